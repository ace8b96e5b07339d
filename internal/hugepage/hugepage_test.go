package hugepage

import (
	"bytes"
	"testing"
	"unsafe"
)

// TestMake makes buffers of lengths around that of a huge page: they are zero, can be written to their end, cannot grow
// in place, and the long ones begin at a huge page.
func TestMake(t *testing.T) {
	for _, n := range []int{0, 1, size - 1, size, size + 1, 2*size - 1, 5*size + 77} {
		b := Make(n)
		if len(b) != n || cap(b) != n || !bytes.Equal(b, make([]byte, n)) {
			t.Fatalf("%d bytes: got %d of %d, or not all zero", n, len(b), cap(b))
		}
		for i := range b {
			b[i] = 1
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); n >= size && at%size != 0 {
			t.Errorf("%d bytes begin at %#x", n, at)
		}
	}
}
