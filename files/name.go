// Package files has what packages that read and write files have in common: names, locks, and errors with a line.
package files

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// A Name is the name of a file, of any bytes. In JSON it is a string where they are UTF-8 without "base64:" in front, else "base64:" and code.
type Name string

const coded = "base64:"

// MarshalText returns the name as JSON has it.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.HasPrefix(string(n), coded) {
		return []byte(n), nil
	}
	return []byte(coded + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

// UnmarshalText takes what MarshalText returns.
func (n *Name) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), coded)
	if !ok {
		*n = Name(text)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(rest)
	*n = Name(raw)
	return err
}
