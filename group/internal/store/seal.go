package store

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
	OfManifest = "volley-group manifest\n"
	OfRun      = "volley-group run\n"
)

// MacOf returns an HMAC, or nothing where there is no key.
func MacOf(key []byte, prefix string, text []byte) string {
	if len(key) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prefix))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// SameMAC compares two HMACs in a time that does not depend on them.
func SameMAC(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// SealKeyed returns a line of JSON with its digest and its HMAC.
func SealKeyed(text []byte, mac string) []byte {
	return fmt.Appendf(slices.Clip(text), "\n{\"sha256\":%q,\"hmac_sha256\":%q}\n", disk.Sum(text), mac)
}

// UnsealKeyed returns the line of JSON if it is what was sealed, and its HMAC, which it does not check.
func UnsealKeyed(data []byte) (text []byte, mac string, err error) {
	if text, err = disk.Unseal(data); err == nil {
		return text, "", nil
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	var seal struct {
		MAC string `json:"hmac_sha256"`
	}
	if json.Unmarshal(rest, &seal) != nil || len(seal.MAC) != 2*sha256.Size || !bytes.Equal(data, SealKeyed(line, seal.MAC)) {
		return nil, "", err
	}
	return line, seal.MAC, nil
}

// MadeWith reports whether a manifest was sealed with a key.
func MadeWith(key, data []byte) bool {
	text, mac, err := UnsealKeyed(data)
	return err == nil && len(key) > 0 && SameMAC(mac, MacOf(key, OfManifest, text))
}
