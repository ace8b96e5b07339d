package engine

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"volley/internal/disk"
	"volley/transport/tcp"
)

// A Secret is 32 random bytes that ranks share: 64 hexadecimal digits as text, and never printed. Zero is none.
type Secret struct{ bytes [32]byte }

// SecretVariable is the environment variable with the secret of a run.
const SecretVariable = "VOLLEY_SECRET"

// NewSecret returns a new secret. It keeps core files from having it.
func NewSecret() (s Secret) {
	forbidCore() // or the system knows no limits
	rand.Read(s.bytes[:])
	return s
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Format does not show the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, "[secret]") }

// MarshalText returns the hexadecimal digits.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s.bytes[:])), nil }

// UnmarshalText reads hexadecimal digits, and keeps core files from having them. The error does not show them.
func (s *Secret) UnmarshalText(text []byte) error {
	text = bytes.TrimSpace(text)
	var read Secret
	if n, err := hex.Decode(read.bytes[:], text[:min(len(text), 64)]); err != nil || n != 32 || len(text) != 64 || read.IsZero() {
		return errors.New("want 64 hexadecimal digits, not all 0: openssl rand -hex 32 makes a secret")
	}
	*s = read
	return forbidCore()
}

// ReadSecret reads the secret of a run from a file that only its owner can read or change, or from standard input ("-").
// Without a name it takes VOLLEY_SECRET, which it removes from the environment; where that is not set the secret is none.
func ReadSecret(name string) (s Secret, err error) {
	var text []byte
	source := name
	switch {
	case name == "":
		source = SecretVariable
		value, ok := os.LookupEnv(source)
		if !ok {
			return s, nil
		}
		os.Unsetenv(source)
		text = []byte(value)
	case name == "-":
		text, err = bufio.NewReaderSize(io.LimitReader(os.Stdin, 128), 128).ReadBytes('\n')
		if err == io.EOF {
			err = nil
		}
	default:
		text, err = disk.ReadSecret(name, 128)
	}
	if err == nil {
		err = s.UnmarshalText(text)
	}
	if err != nil {
		return s, fmt.Errorf("cannot read the secret of the run in %s: %w", source, err)
	}
	return s, nil
}

// tls returns what connections of a run with the secret need: both sides show that they have its key.
func (s Secret) tls() (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, s.bytes[:], nil, "volley run key 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	// Nobody looks at more of the certificate than at its key: clocks may differ.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		// Names in certificates say nothing about ranks: VerifyConnection replaces what is skipped.
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return fmt.Errorf("%w: it shows no certificate", tcp.ErrStranger)
			}
			if theirs, ok := c.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || !theirs.Equal(public) {
				return fmt.Errorf("%w: it does not have the secret of this run", tcp.ErrStranger)
			}
			return nil
		},
	}, nil
}
