package session

import (
	"bytes"
	"fmt"

	"volley/group/internal/store"
	"volley/internal/disk"
)

// Bytes of a key.
const (
	leastKey = 16
	MostKey  = 4096
)

// ReadKey returns the key in a file, which is all of it but for a line break at the end. The
// file has to be one that nobody but its owner can read or write, the caller's or root's.
func ReadKey(path string) ([]byte, error) {
	text, err := disk.ReadSecret(path, MostKey+2)
	if err != nil {
		return nil, store.Inputf("cannot read the key: %w. A new one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)", err)
	}
	key := bytes.TrimSuffix(text, []byte("\n"))
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func checkKey(key []byte) error {
	if len(key) < leastKey || len(key) > MostKey {
		return store.Inputf("a key of %d bytes or more than %d: want %d to %d; a new one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)", min(len(key), MostKey), MostKey, leastKey, MostKey)
	}
	return nil
}
