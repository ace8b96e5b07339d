package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/algo"
)

// small is a K and a size for each case that take no time.
var small = map[string]struct {
	k    int
	size int64
}{"dense": {5, 1000}, "cauchy": {6, 1000}, "parity": {12, 192}, "leopard": {16, 128}, "dft": {8, 3 * 32}, "allgather": {5, 1001}}

// TestMeasure measures each case at a small size: nothing is wrong, and all that a row
// shows is there.
func TestMeasure(t *testing.T) {
	for _, c := range Cases() {
		s, ok := small[c.Name]
		if !ok {
			t.Fatalf("%s: no small size", c.Name)
		}
		for _, names := range [][]string{nil, {"universal", "bruck-allgather"}} {
			progress := 0
			results, err := c.Measure(t.Context(), s.k, s.size, Options{Algorithms: names, Iterations: 2, Progress: func(int) { progress++ }})
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			want := max(1, len(names))
			if c.plain {
				want = 1
			}
			if len(results) != want || progress != 3 {
				t.Fatalf("%s: %d results, %d iterations", c.Name, len(results), progress)
			}
			for i, r := range results {
				if names != nil && !c.plain && r.Algorithm != names[i] {
					t.Errorf("%s: %s for %s", c.Name, r.Algorithm, names[i])
				}
				if r.Wrong != 0 {
					t.Errorf("%s, %s: %d wrong", c.Name, r.Algorithm, r.Wrong)
				}
				if !(r.Ratio() > 0 && r.PeerSeconds > 0 && r.Seconds > 0 && r.C1 > 0 && r.C2 > 0 && r.Ports >= 1 && r.Compile > 0 && r.Compile < 1) {
					t.Errorf("%s: %+v", c.Name, r)
				}
				if (r.Check == 0 || r.CopySeconds == 0 || r.C3 == 0) != c.plain {
					t.Errorf("%s: check %v, memcpy %v, C3 %d", c.Name, r.Check, r.CopySeconds, r.C3)
				}
				if r.Iterations != 2 || r.Field != c.Field || r.Peer != c.Peer || r.K != s.k || r.Size != s.size {
					t.Errorf("%s: %+v", c.Name, r)
				}
			}
		}
	}
}

// TestWrong breaks packets of a result and has them counted.
func TestWrong(t *testing.T) {
	for _, c := range Cases() {
		s := small[c.Name]
		w, err := c.build(s.k, s.size)
		if err != nil {
			t.Fatal(err)
		}
		one, err := w.start(t.Context(), algo.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := w.peer(); err != nil {
			t.Fatal(err)
		}
		if c.plain { // whose peer writes the same packets
			if _, err := one(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		for broken := range 4 {
			if n := w.wrong(); n != broken {
				t.Errorf("%s: %d wrong, want %d", c.Name, n, broken)
			}
			w.outputs[broken+1][int(s.size)-1-7*broken] ^= 1
		}
		for _, p := range w.outputs {
			clear(p)
		}
		if n := w.wrong(); n != len(w.outputs) {
			t.Errorf("%s: %d wrong of zeros", c.Name, n)
		}
		if c.Name == "dft" { // no element of the field
			for i := range w.outputs[3] {
				w.outputs[3][i] = 0xff
			}
			if n := w.wrong(); n != len(w.outputs) {
				t.Errorf("%s: %d wrong", c.Name, n)
			}
		}
	}
}

// TestCheck refuses what cannot be measured.
func TestCheck(t *testing.T) {
	for _, x := range []struct {
		name string
		k    int
		size int64
		want string
	}{
		{"dense", 129, 1, "2 to 128"}, {"dense", 4, 0, "multiple of 1"}, {"dense", 4, 1 << 40, "would hold 12"},
		{"leopard", 12, 64, "power of 2"}, {"dft", 8, 33, "multiple of 32"},
	} {
		c, err := Lookup(x.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Measure(t.Context(), x.k, x.size, Options{Iterations: 1}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s, K = %d, %d bytes: %v, want %s", x.name, x.k, x.size, err, x.want)
		}
	}
	if _, err := Lookup("sparse"); err == nil || !strings.Contains(err.Error(), "want one of dense, cauchy, parity") {
		t.Error(err)
	}
	if r, err := denseCase.Measure(t.Context(), 4, 8, Options{Iterations: 1, Algorithms: []string{"dft", "bruck-allgather"}}); err != nil || len(r) != 1 || r[0].Algorithm != "bruck-allgather" {
		t.Errorf("of two algorithms one takes the matrix: %v, %v", r, err)
	}
}

// TestWrite writes a row in each format.
func TestWrite(t *testing.T) {
	m := Machine{CPU: "a CPU", Cores: 2, Go: "go1", Instructions: "AVX2", Kernels: "AVX2", Set: "all"}
	results := []Result{
		{
			Case: "dense", Field: "2^8", Size: 1 << 20, K: 4, Ports: 1, Algorithm: "universal", C1: 2, C2: 2, C3: 5,
			Iterations: 9, Seconds: 1.5e-3, Check: 2e-4, Compile: 0.25, Peer: "klauspost", PeerSeconds: 1e-3, CopySeconds: 1.2e-4, Machine: m,
		},
		{Case: "allgather", Size: 1000, K: 2, C2: 1.5, Seconds: 1, Peer: "memcpy", PeerSeconds: 1, Machine: m},
	}
	var b bytes.Buffer
	if err := Write(&b, "text", results); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if want := "dense 2^8 1 MiB 4 1 universal 2 2 5 9 1.5ms 200µs 25 % 2.8 1.4 0 klauspost 1ms 1.50 120µs"; strings.Join(strings.Fields(lines[4]), " ") != want {
		t.Errorf("%s, want %s", lines[4], want)
	}
	if lines[0] != "a CPU, GOMAXPROCS 2, go1 AVX2" {
		t.Error(lines[0])
	}
	b.Reset()
	if err := Write(&b, "json", results); err != nil {
		t.Fatal(err)
	}
	var table struct{ Rows []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &table); err != nil || table.Rows[0]["ratio"] != 1.5 || table.Rows[0]["cpu"] != "a CPU" || table.Rows[1]["memcpy_seconds"] != nil {
		t.Errorf("%v, %v", table, err)
	}
	var again struct{ Rows []Result }
	if err := json.Unmarshal(b.Bytes(), &again); err != nil || !slices.Equal(again.Rows, results) {
		t.Errorf("%+v, %v, want %+v", again, err, results)
	}
}

// TestCheckSet refuses figures of kernels that a set leaves out.
func TestCheckSet(t *testing.T) {
	for _, m := range []Machine{
		{Set: "no-gfni", Kernels: "GFNI and AVX"}, {Set: "avx2", Kernels: "GFNI and AVX-512"}, {Set: "none", Kernels: "AVX2"}, {Set: "much"},
	} {
		if err := m.checkSet(); err == nil || !strings.Contains(err.Error(), m.Set) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := CurrentMachine().checkSet(); err != nil {
		t.Error(err)
	}
}

func BenchmarkDense(b *testing.B)     { benchmark(b, denseCase) }
func BenchmarkParity(b *testing.B)    { benchmark(b, parityCase) }
func BenchmarkLeopard(b *testing.B)   { benchmark(b, leopardCase) }
func BenchmarkDFT(b *testing.B)       { benchmark(b, dftCase) }
func BenchmarkAllgather(b *testing.B) { benchmark(b, allgatherCase) }

// benchmark runs a case by auto, without and with the final check, and its peer, for
// benchstat -col /who. cmd/speed measures them in turns instead.
func benchmark(b *testing.B, c Case) {
	for _, k := range c.Ks {
		b.Run(fmt.Sprintf("K=%d/len=%s", k, strings.ReplaceAll(Size(c.Size), " ", "")), func(b *testing.B) {
			w, err := c.build(k, c.Size)
			if err != nil {
				b.Fatal(err)
			}
			ours, err := w.start(b.Context(), algo.Auto)
			if err != nil {
				b.Fatal(err)
			}
			who := func(name string, f func() error) {
				b.Run("who="+name, func(b *testing.B) {
					if err := f(); err != nil { // caches and pools are warm
						b.Fatal(err)
					}
					b.SetBytes(int64(k) * c.Size)
					b.ReportAllocs()
					for b.Loop() {
						if err := f(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			run := func(check bool) func() error {
				return func() error { _, err := ours(b.Context(), check); return err }
			}
			who("volley", run(false))
			if !c.plain {
				who("volley-checked", run(true))
			}
			who(c.Peer, w.peer)
		})
	}
}
