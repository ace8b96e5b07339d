package twosums

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

func TestSHA256(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{1})
	for n := range 400 {
		for _, m := range []int{n, n + 1, 64 << 10} {
			a, b := make([]byte, n), make([]byte, m)
			rng.Read(a)
			rng.Read(b)
			if m > 400 && n%100 == 0 {
				a = append(a, b[n:]...)
			}
			var got [2][sha256.Size]byte
			SHA256(got[0][:], got[1][:], a, b)
			if got != [2][sha256.Size]byte{sha256.Sum256(a), sha256.Sum256(b)} {
				t.Fatalf("%d and %d bytes: %x", len(a), len(b), got)
			}
		}
	}
}

// BenchmarkSHA256 takes two messages of 64 KiB one after the other, and at a time.
func BenchmarkSHA256(b *testing.B) {
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	var to [2][sha256.Size]byte
	b.Run("one", func(b *testing.B) {
		b.SetBytes(int64(len(x) + len(y)))
		for b.Loop() {
			to[0], to[1] = sha256.Sum256(x), sha256.Sum256(y)
		}
	})
	b.Run("two", func(b *testing.B) {
		b.SetBytes(int64(len(x) + len(y)))
		for b.Loop() {
			SHA256(to[0][:], to[1][:], x, y)
		}
	})
}
