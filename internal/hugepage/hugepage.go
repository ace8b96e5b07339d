// Package hugepage makes long buffers that take few page faults.
package hugepage

import "unsafe"

// size is that of a huge page, of x86-64 and most others.
const size = 2 << 20

// Make returns n bytes, all zero. If they are as long as a huge page, they begin at one, and the system is asked for
// such: the first touch then takes one fault in place of 512, and another process's copy as many fewer look-ups.
func Make(n int) []byte {
	if n < size {
		return make([]byte, n)
	}
	b := make([]byte, n+size)
	b = b[-uintptr(unsafe.Pointer(&b[0]))%size:][:n:n]
	advise(b[:n/size*size])
	return b
}
