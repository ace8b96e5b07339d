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
	"strconv"
	"strings"
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

// ReadSecret reads the secret of a run from a file that only its owner can read or change, from standard
// input ("-"), or from an open file descriptor ("fd:3"). Without a name it takes VOLLEY_SECRET, which it removes from
// the environment; where that is not set the secret is none.
func ReadSecret(name string) (s Secret, err error) {
	var text []byte
	source := name
	number, descriptor := strings.CutPrefix(name, "fd:")
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
		text, err = readLine(os.Stdin)
	case descriptor:
		var fd uint64
		if fd, err = strconv.ParseUint(number, 10, 16); err == nil {
			f := os.NewFile(uintptr(fd), name)
			defer f.Close()
			text, err = readLine(f)
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

// readLine returns the first line, of at most 128 bytes.
func readLine(r io.Reader) ([]byte, error) {
	text, err := bufio.NewReaderSize(io.LimitReader(r, 128), 128).ReadBytes('\n')
	if err == io.EOF {
		err = nil
	}
	return text, err
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
	return mutual(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, func(chain []*x509.Certificate) error {
		if theirs, ok := chain[0].PublicKey.(ed25519.PublicKey); !ok || !theirs.Equal(public) {
			return fmt.Errorf("%w: it does not have the secret of this run", tcp.ErrStranger)
		}
		return nil
	}), nil
}

// clusterTLS returns what connections with a cluster's certificates need. Whoever has one that the authority
// has signed may take part, whatever name it is for.
func clusterTLS(cert, key, authority string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate in %s with its key in %s: %w", cert, key, err)
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate of an authority: want PEM", authority)
	}
	return mutual(certificate, func(chain []*x509.Certificate) error {
		between := x509.NewCertPool()
		for _, c := range chain[1:] {
			between.AddCert(c)
		}
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			return fmt.Errorf("%w: %w", tcp.ErrStranger, err)
		}
		return nil
	}), nil
}

// mutual returns a configuration in which both sides show a certificate, which the other one checks.
func mutual(certificate tls.Certificate, check func(chain []*x509.Certificate) error) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAnyClientCert,
		// Names in certificates say nothing about ranks: check replaces what is skipped.
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return fmt.Errorf("%w: it shows no certificate", tcp.ErrStranger)
			}
			return check(c.PeerCertificates)
		},
	}
}
