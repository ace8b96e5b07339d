package group

import (
	"encoding/hex"
	"strings"
	"testing"

	"volley/group/internal/store"
)

// TestSums compares digests with the test vectors of their authors: for BLAKE3 the first bytes of
// 0, 1, …, 250, 0, …, and for the others what sha256sum and xxh128sum print.
func TestSums(t *testing.T) {
	t.Parallel()
	count := make([]byte, 102400)
	for i := range count {
		count[i] = byte(i % 251)
	}
	for _, x := range []struct {
		digest string
		bytes  int
		want   string
	}{
		{SHA256, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{BLAKE3, 0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{BLAKE3, 1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{BLAKE3, 102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
		{XXH3, 0, "99aa06d3014798d86001c324468d497f"},
	} {
		m := &store.Manifest{Digest: x.digest}
		if is := hex.EncodeToString(m.AppendSum(nil, count[:x.bytes])); is != x.want || len(is) != 2*store.DigestBytes[x.digest] {
			t.Errorf("%s of %d bytes: %s: want %s", x.digest, x.bytes, is, x.want)
		}
	}
}

// TestDigests protects with each digest after each: what it was made with stays until another is
// asked for, damage is found and mended, and a file that has rotted is found whatever comes next.
func TestDigests(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	w.ranks = 2
	was := w.trees()
	for _, digest := range []string{XXH3, BLAKE3, SHA256} {
		for _, given := range []string{digest, ""} {
			r, err := w.protectBy(w.Process(), ProtectOptions{Digest: given})
			if must(t, err, w.whole()); r.Digest != digest || given != "" && r.Coded != r.Blocks || given == "" && r.Coded != 0 {
				t.Errorf("%s, given %q: %+v", digest, given, r)
			}
		}
		w.Overwrite("/n2/plain", 3, []byte("#"), true)
		v, err := w.verifyBy(w.Process())
		must(t, err)
		if n := v.Nodes[2]; v.Digest != digest || n.Status != Damaged || listed(n.Findings) != "plain damaged" {
			t.Errorf("%s: %+v", digest, v)
		}
		for _, next := range []string{SHA256, BLAKE3, XXH3} {
			if _, err := w.protectBy(w.Process(), ProtectOptions{Digest: next, Full: true}); !IsInputError(err) || !strings.Contains(err.Error(), "/n2/plain is damaged") {
				t.Errorf("%s, then %s: %v", digest, next, err)
			}
		}
		must(t, w.recover())
		w.lose(1, 3)
		must(t, w.recover(), w.whole(), diff(digest, strings.Join(was, ""), strings.Join(w.trees(), "")))
	}
}

// TestDigestRefused asks for one that is of no use with a key.
func TestDigestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	_, err := w.protectBy(w.Process(), ProtectOptions{Digest: XXH3})
	must(t, err)
	for digest, want := range map[string]string{"md5": `digest "md5": want blake3, sha256, xxh3`, XXH3: "with a key take sha256 or blake3", "": "with a key take"} {
		if _, err := w.with(keyed(testKey)).clone().protectBy(w.Process(), ProtectOptions{Digest: digest}); !IsInputError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v: want %q", digest, err, want)
		}
	}
	_, err = w.with(keyed(testKey)).clone().protectBy(w.Process(), ProtectOptions{Digest: BLAKE3})
	must(t, err)
}
