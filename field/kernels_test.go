package field

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// withKernels runs f with the given kernels; nil is Go alone.
func withKernels(path *kernels, f func()) {
	before := currentKernels
	currentKernels = path
	defer func() { currentKernels = before }()
	f()
}

// packets returns n packets of random bytes with something around them: no two are
// aligned alike.
func packets(rng *rand.Rand, n, length int) (whole, parts [][]byte) {
	for i := range n {
		b := make([]byte, length+128)
		for k := 0; k < len(b); k += 8 {
			store8(b[k:], rng.Uint64())
		}
		at := (17*i + rng.IntN(3)) % 64
		whole, parts = append(whole, b), append(parts, b[at:at+length:at+length])
	}
	return whole, parts
}

// pathRows returns matrices that lead to every kind of kernel.
func pathRows(f Field, rng *rand.Rand, outputs, inputs int) map[string][][]Element {
	q := f.Order().Uint64()
	random := func(int, int) Element { return Code(rng.Uint64N(q)) }
	kinds := map[string]func(i, j int) Element{
		"random": random,
		"ones":   func(int, int) Element { return One },
		"sums": func(i, j int) Element {
			if i%3 == 1 {
				return Code(rng.Uint64N(2))
			}
			return random(i, j)
		},
		"sparse": func(i, j int) Element {
			if (i+j)%5 == 0 {
				return random(i, j)
			}
			return Element{}
		},
		"zero": func(int, int) Element { return Element{} },
	}
	all := map[string][][]Element{}
	for name, entry := range kinds {
		rows := make([][]Element, outputs)
		for i := range rows {
			for j := range inputs {
				rows[i] = append(rows[i], entry(i, j))
			}
		}
		all[name] = rows
	}
	if outputs == 2 && inputs == 2 {
		c := Code(rng.Uint64N(q))
		d := Code(c[0] ^ 1)
		all["butterfly"] = [][]Element{{One, c}, {One, d}}
		all["butterfly, inputs swapped"] = [][]Element{{c, One}, {d, One}}
		all["inverse butterfly"] = [][]Element{{d, c}, {One, One}}
		all["inverse butterfly, outputs swapped"] = [][]Element{{One, One}, {d, c}}
		all["sum and difference"] = [][]Element{{One, One}, {One, One}}
	}
	if outputs == 4 && inputs == 4 {
		var a [4]Element
		for k := range a {
			a[k] = Code(rng.Uint64N(q))
		}
		layer := func(inverse bool, c, d Element, x, y [2]int) [][]Element { // butterflies of x and of y
			rows := make([][]Element, 4)
			for i := range rows {
				rows[i] = make([]Element, 4)
			}
			for k, pair := range [][2]int{x, y} {
				k := []Element{c, d}[k]
				rows[pair[0]][pair[0]], rows[pair[0]][pair[1]] = One, k
				rows[pair[1]][pair[0]], rows[pair[1]][pair[1]] = One, Code(k[0]^1)
				if inverse {
					rows[pair[0]][pair[0]], rows[pair[0]][pair[1]] = Code(k[0]^1), k
					rows[pair[1]][pair[0]], rows[pair[1]][pair[1]] = One, One
				}
			}
			return rows
		}
		times := func(l, r [][]Element) [][]Element {
			rows := make([][]Element, 4)
			for i := range rows {
				for j := range 4 {
					var sum Element
					for k := range 4 {
						sum = f.Add(sum, f.Mul(l[i][k], r[k][j]))
					}
					rows[i] = append(rows[i], sum)
				}
			}
			return rows
		}
		for _, inverse := range []bool{false, true} {
			far := layer(inverse, a[0], a[1], [2]int{0, 2}, [2]int{1, 3})
			near := layer(inverse, a[2], a[3], [2]int{0, 1}, [2]int{2, 3})
			all[fmt.Sprint("four butterflies ", inverse, true)] = times(near, far)
			all[fmt.Sprint("four butterflies ", inverse, false)] = times(far, near)
		}
	}
	return all
}

// TestButterfliesAreFound pins down which maps get a kernel of their own.
func TestButterfliesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, path := range kernelPaths {
		withKernels(path, func() {
			for _, name := range []string{"2^8", "2^16"} {
				f, err := Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				build := f.Map
				if p, ok := f.(Planar); ok {
					build = p.PlanarMap
				}
				for kind, rows := range pathRows(f, rng, 2, 2) {
					_, got := build(rows).(*butterflyMap)
					if want := strings.Contains(kind, "butterfly"); got != want && kind != "sums" && kind != "sparse" {
						t.Errorf("%s: %s: coefficients %s: found to be a butterfly: %v", path.name, name, kind, got)
					}
				}
				for kind, rows := range pathRows(f, rng, 4, 4) {
					_, got := build(rows).(*butterflyMap)
					want := kind == "four butterflies false true" || kind == "four butterflies true false"
					if got != want {
						t.Errorf("%s: %s: coefficients %s: found to be butterflies: %v", path.name, name, kind, got)
					}
				}
			}
		})
	}
}

// TestKernelPaths compares the kernels of every set of instructions that the
// processor has with Combine in Go.
func TestKernelPaths(t *testing.T) {
	for _, path := range append(append([]*kernels(nil), kernelPaths...), nil) {
		t.Logf("runs: %s", pathName(path))
		for _, name := range []string{"2^8", "2^8:0x11b", "2^5", "2", "2^16", "2^16:0x1002d", "2^12", "2^9"} {
			t.Run(pathName(path)+"/"+name, func(t *testing.T) {
				f, err := Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				withKernels(path, func() { testPath(t, f) })
			})
		}
	}
}

func testPath(t *testing.T, f Field) {
	rng := rand.New(rand.NewPCG(5, 6))
	type shape struct{ outputs, inputs int }
	shapes := []shape{{1, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 4}, {4, 9}, {5, 5}, {6, 1}, {7, 7}, {8, 8}, {9, 4},
		{10, 1}, {11, 1}, {12, 34}, {13, 1}, {14, 1}, {15, 1}, {16, 5}, {17, 70}}
	lengths := []int{0, 2, 62, 64, 66, 128, 130, 190, 256, 258, 382, 514, 770}
	if f.SymbolBytes() == 1 {
		lengths = append(lengths, 1, 63, 65, 127, 129, 255)
	}
	for k, x := range shapes {
		for i, n := range lengths {
			if n > 128 && (x.inputs > 9 || x.inputs > 2 && (i+k)%3 > 0) {
				continue // these kernels have met every length of a rest
			}
			for kind, rows := range pathRows(f, rng, x.outputs, x.inputs) {
				for _, add := range []bool{false, true} {
					what := fmt.Sprintf("%dx%d, %d bytes, coefficients %s, add %v", x.outputs, x.inputs, n, kind, add)
					testPathMap(t, f, what, rng, rows, n, add)
				}
			}
		}
	}
}

// TestKernelLengths does the same for every length of a packet up to three blocks and a rest.
func TestKernelLengths(t *testing.T) {
	for _, path := range kernelPaths {
		for _, name := range []string{"2^8", "2^16"} {
			f, err := Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(13, 14))
			withKernels(path, func() {
				for n := 0; n <= 200; n += f.SymbolBytes() {
					for kind, rows := range pathRows(f, rng, 3, 4) {
						testPathMap(t, f, fmt.Sprintf("%s, %d bytes, coefficients %s", path.name, n, kind), rng, rows, n, n%4 == 0)
					}
				}
			})
		}
	}
}

// testPathMap compares Map, PlanarMap and Combine with Combine in Go.
func testPathMap(t *testing.T, f Field, what string, rng *rand.Rand, rows [][]Element, n int, add bool) {
	t.Helper()
	_, in := packets(rng, len(rows[0]), n)
	mask := (f.Order().Uint64() - 1) * (math.MaxUint64 / (1<<(8*f.SymbolBytes()) - 1)) // of 8 bytes
	for _, p := range in {
		for k := 0; k < n; k += 8 { // only elements
			store8(p[k:], load8(p[k:])&mask)
		}
	}
	products := make([][]byte, len(rows))
	for i := range products {
		products[i] = make([]byte, n)
		withKernels(nil, func() { f.Combine(products[i], rows[i], in) })
	}
	check := func(what string, m func(out [][]byte), to, from func([]byte) []byte) {
		t.Helper()
		whole, out := packets(rng, len(rows), n)
		before := make([][]byte, len(whole))
		for i := range whole {
			copy(out[i], to(in[i%len(in)])) // so that what is added to are elements
			before[i] = bytes.Clone(whole[i])
		}
		old := make([][]byte, len(out))
		for i := range out {
			old[i] = from(out[i])
		}
		m(out)
		for i := range out {
			want := products[i]
			if add {
				want = bytes.Clone(want)
				subtle.XORBytes(want, want, old[i])
			}
			if got := from(out[i]); !bytes.Equal(got, want) {
				for k := range got {
					if got[k] != want[k] {
						t.Fatalf("%s: %s: output %d has %#x at byte %d, want %#x", what, f.Name(), i, got[k], k, want[k])
					}
				}
			}
			// What is around the packet is as it was.
			start := indexOf(whole[i], out[i])
			copy(whole[i][start:start+n], before[i][start:start+n])
			if !bytes.Equal(whole[i], before[i]) {
				t.Fatalf("%s: %s: output %d: written beyond the packet", what, f.Name(), i)
			}
		}
	}
	same := bytes.Clone
	check("Map of "+what, func(out [][]byte) { f.Map(rows).Apply(out, in, add) }, same, same)
	stream := func(m Map, in [][]byte) func([][]byte) {
		return func(out [][]byte) {
			aligned := make([][]byte, len(out)) // what is not is written as by Apply
			for i, p := range out {
				buffer := make([]byte, len(p)+lineBytes)
				aligned[i] = buffer[-uintptr(unsafe.Pointer(&buffer[0]))%lineBytes:][:len(p)]
			}
			m.(Streamer).Stream(aligned, in)
			m.(Streamer).Stream(out, in)
			for i, p := range aligned {
				if !bytes.Equal(p, out[i]) {
					t.Fatalf("%s: Stream of %s: output %d differs where it begins with a line", f.Name(), what, i)
				}
			}
		}
	}
	if m, ok := f.Map(rows).(Streamer); ok && !add {
		check("Stream of "+what, stream(m, in), same, same)
	}
	if p, ok := f.(Planar); ok && currentKernels != nil {
		change := func(do func(dst, src []byte)) func([]byte) []byte {
			return func(b []byte) []byte { c := make([]byte, len(b)); do(c, b); return c }
		}
		planes := make([][]byte, len(in))
		for j := range in {
			planes[j] = change(p.ToPlanes)(in[j])
		}
		check("PlanarMap of "+what, func(out [][]byte) { p.PlanarMap(rows).Apply(out, planes, add) }, change(p.ToPlanes), change(p.FromPlanes))
		if m, ok := p.PlanarMap(rows).(Streamer); ok && !add {
			check("Stream in planes of "+what, stream(m, planes), change(p.ToPlanes), change(p.FromPlanes))
		}
	}
	if !add {
		check("Combine of "+what, func(out [][]byte) {
			for i := range out {
				f.Combine(out[i], rows[i], in)
			}
		}, same, same)
	}
}

// indexOf returns where in the buffer the packet begins.
func indexOf(buffer, packet []byte) int {
	for at := range buffer {
		if len(packet) > 0 && &buffer[at] == &packet[0] {
			return at
		}
	}
	return 0
}

// TestMapAllocations holds the maps of kernels to their promise; TestCombineAllocations
// does others.
func TestMapAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, path := range kernelPaths {
		for _, name := range []string{"2^8", "2^8:0x11b", "2^16"} {
			f, err := Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			_, in := packets(rng, 9, 704)
			_, out := packets(rng, 9, 704)
			rows := pathRows(f, rng, 9, 9)["random"]
			withKernels(path, func() {
				maps := []Map{f.Map(rows)}
				if p, ok := f.(Planar); ok {
					maps = append(maps, p.PlanarMap(rows))
				}
				for _, m := range maps {
					for _, add := range []bool{false, true} {
						if n := testing.AllocsPerRun(100, func() { m.Apply(out, in, add) }); n >= 1 {
							t.Errorf("%s, %s: Apply of a %T, add %v: %v allocations", pathName(path), name, m, add, n)
						}
					}
				}
			})
		}
	}
}
