// Package twosums takes the SHA-256 of two messages at once: instructions of one fill the waits of the other.
package twosums

import "crypto/sha256"

// SHA256 writes the SHA-256 of a and b to x and y. It is fast where a and b are equally long.
func SHA256(x, y, a, b []byte) {
	if len(a) == len(b) && len(a) >= sha256.BlockSize && sumBoth(x, y, a, b) {
		return
	}
	first, second := sha256.Sum256(a), sha256.Sum256(b)
	copy(x, first[:])
	copy(y, second[:])
}
