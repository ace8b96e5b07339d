//go:build amd64 || arm64

package field

import "unsafe"

// view returns the symbols of a packet in place, where memory holds them as E does
// and the packet is aligned. E has the size of a symbol.
func view[E any](packet []byte) ([]E, bool) {
	var e E
	p := unsafe.Pointer(unsafe.SliceData(packet))
	if uintptr(p)%unsafe.Alignof(e) != 0 {
		return nil, false
	}
	return unsafe.Slice((*E)(p), len(packet)/int(unsafe.Sizeof(e))), true
}
