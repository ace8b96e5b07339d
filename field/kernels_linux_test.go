package field_test

import (
	"os"
	"syscall"
	"testing"

	"volley/field"
	"volley/field/fieldtest"
)

// fenced returns n bytes that end where memory ends that may be touched, or begin where
// it begins.
func fenced(t *testing.T, n int, atEnd bool) []byte {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{m[:page], m[page+size:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	packet := m[page : page+size]
	if atEnd {
		packet = packet[size-n:]
	}
	return packet[:n:n]
}

// TestKernelBounds runs the kernels on packets beside memory that must not be touched:
// reading beyond one would end the test.
func TestKernelBounds(t *testing.T) {
	for _, n := range []int{2, 30, 62, 64, 66, 126, 128, 130, 192, 200, 254, 256, 258, 384, 514, 4096} {
		for _, atEnd := range []bool{false, true} {
			var packets [][]byte
			for range 12 {
				packets = append(packets, fenced(t, n, atEnd))
			}
			for _, name := range []string{"2^8", "2^16"} {
				field.ForKernels(func(string) { newSuite(fieldtest.Parse(t, name)).bounds(packets) })
			}
		}
	}
}

// bounds applies maps to packets.
func (s *suite) bounds(packets [][]byte) {
	p, planar := s.planar()
	if planar {
		p.ToPlanes(packets[0], packets[1])
		p.FromPlanes(packets[0], packets[1])
	}
	for _, outputs := range []int{1, 2, 3, 4, 5, 8} {
		inputs := max(2, outputs&4) // four of four, too
		out, in := packets[:outputs], packets[len(packets)-inputs:]
		for _, rows := range s.mapRows(newRand(), outputs, inputs) {
			for _, add := range []bool{false, true} {
				s.Map(rows).Apply(out, in, add)
				if planar {
					p.PlanarMap(rows).Apply(out, in, add)
				}
			}
			s.Combine(out[0], rows[0], in)
		}
	}
}
