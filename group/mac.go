package group

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"volley/internal/disk"
)

// What an HMAC is of begins with one of these: that of a manifest is of nothing else.
const (
	ofManifest = "volley-group manifest\n"
	ofRun      = "volley-group run\n"
)

// macOf returns an HMAC, or nothing where there is no key.
func macOf(key []byte, of string, text []byte) string {
	if len(key) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(of))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

func sameMAC(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

func sealKeyed(text []byte, mac string) []byte {
	return fmt.Appendf(slices.Clip(text), "\n{\"sha256\":%q,\"hmac_sha256\":%q}\n", disk.Sum(text), mac)
}

// unsealKeyed returns the line of JSON if it is what was sealed, and its HMAC, which it does not check.
func unsealKeyed(data []byte) (text []byte, mac string, err error) {
	if text, err = disk.Unseal(data); err == nil {
		return text, "", nil
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	var of struct {
		MAC string `json:"hmac_sha256"`
	}
	if json.Unmarshal(rest, &of) != nil || len(of.MAC) != 2*sha256.Size || !bytes.Equal(data, sealKeyed(line, of.MAC)) {
		return nil, "", err
	}
	return line, of.MAC, nil
}

func madeWith(key, data []byte) bool {
	text, mac, err := unsealKeyed(data)
	return err == nil && len(key) > 0 && sameMAC(mac, macOf(key, ofManifest, text))
}
