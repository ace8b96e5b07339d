package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
)

// Digests of segments and parity. Manifests and records always have SHA-256.
const (
	SHA256 = "sha256"
	BLAKE3 = "blake3"
	XXH3   = "xxh3" // 128 bits, against accidents: whoever can write a node can make up data that has a given one
)

var DigestBytes = map[string]int{SHA256: sha256.Size, BLAKE3: 32, XXH3: 16}

// CheckDigest returns an error where there is no such digest, or it is of no use with a key.
func CheckDigest(name string, key []byte) error {
	switch {
	case DigestBytes[name] == 0:
		return Inputf("digest %q: want %s", name, strings.Join(slices.Sorted(maps.Keys(DigestBytes)), ", "))
	case name == XXH3 && len(key) > 0:
		return Inputf("digest xxh3 finds accidents, and a key is against people, who can make up data for it: with a key take sha256 or blake3")
	}
	return nil
}

func (m *Manifest) AppendSum(to, part []byte) []byte {
	switch m.Digest {
	case SHA256:
		is := sha256.Sum256(part)
		return append(to, is[:]...)
	case BLAKE3:
		is := blake3.Sum256(part)
		return append(to, is[:]...)
	case XXH3:
		is := xxh3.Hash128(part).Bytes()
		return append(to, is[:]...)
	}
	panic(fmt.Sprintf("group: digest %q", m.Digest))
}

func (m *Manifest) DigestOf(list []byte, i int) []byte {
	n := DigestBytes[m.Digest]
	return list[i*n:][:n]
}

func (m *Manifest) SameDigest(part, list []byte, i int) bool {
	return bytes.Equal(m.AppendSum(nil, part), m.DigestOf(list, i))
}
