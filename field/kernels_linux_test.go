package field

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
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
	rng := rand.New(rand.NewPCG(7, 8))
	for _, path := range kernelPaths {
		withKernels(path, func() {
			for _, name := range []string{"2^8", "2^16"} {
				f, err := Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{2, 30, 62, 64, 66, 126, 128, 130, 192, 200, 254, 256, 258, 384, 514, 4096} {
					for _, atEnd := range []bool{false, true} {
						t.Run("", func(t *testing.T) { testBounds(t, f, rng, n, atEnd) })
					}
				}
			}
		})
	}
}

func testBounds(t *testing.T, f Field, rng *rand.Rand, n int, atEnd bool) {
	packets := func(number int) [][]byte {
		all := make([][]byte, number)
		for i := range all {
			all[i] = fenced(t, n, atEnd)
		}
		return all
	}
	for _, outputs := range []int{1, 2, 3, 5, 8} {
		out, in := packets(outputs), packets(2)
		for _, rows := range pathRows(f, rng, outputs, 2) {
			for _, add := range []bool{false, true} {
				f.Map(rows).Apply(out, in, add)
				if p, ok := f.(Planar); ok {
					p.PlanarMap(rows).Apply(out, in, add)
				}
			}
			f.Combine(out[0], rows[0], in)
		}
		if p, ok := f.(Planar); ok {
			p.ToPlanes(out[0], in[0])
			p.FromPlanes(out[0], in[0])
		}
	}
}
