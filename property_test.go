package volley_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/sim"
)

// TestEncodeProperty draws field, matrix, K, p, algorithm, lengths and memory, and
// compares the result with the dense product and the counted costs with those of
// the plan.
func TestEncodeProperty(t *testing.T) {
	names := []string{algo.Auto}
	for _, a := range algo.Algorithms() {
		if !a.Structured {
			names = append(names, a.Name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		f, err := field.Parse(rapid.SampledFrom([]string{"2^8", "2^16", "2^3", "257", "3^4", "2", "65537"}).Draw(rt, "field"))
		if err != nil {
			rt.Fatal(err)
		}
		k := rapid.IntRange(1, 20).Draw(rt, "K")
		ports := rapid.IntRange(1, 5).Draw(rt, "p")
		name := rapid.SampledFrom(names).Draw(rt, "algorithm")
		seed := rapid.Uint64().Draw(rt, "seed")
		longest := rapid.SampledFrom([]int{0, 1, 7, 100, 5000}).Draw(rt, "longest")
		memory := rapid.SampledFrom([]int64{32 << 10, 1 << 20, volley.DefaultMemory}).Draw(rt, "memory")
		check := rapid.Bool().Draw(rt, "check")
		a, err := matrix.Random(f, k, k, seed)
		if err != nil {
			rt.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		packets := make([][]byte, k)
		for i := range packets {
			packets[i] = randomPacket(f, rng, rng.IntN(longest+1))
		}
		coded, r := mustEncode(t, alike(a, packets, volley.WithAlgorithm(name), volley.WithPorts(ports), volley.WithMemory(memory), volley.WithCheck(check)))
		for j, want := range product(a, packets) {
			if !bytes.Equal(coded[j], want) {
				rt.Fatalf("processor %d: not the dense product", j)
			}
		}
		algorithm, err := algo.Lookup(r.Algorithm)
		if err != nil {
			rt.Fatal(err)
		}
		p, err := algorithm.Compile(a, ports)
		if err != nil {
			rt.Fatal(err)
		}
		if cost := sim.Count(p); r.C1 != cost.C1 || r.C2 != cost.C2 || r.Verified != check {
			rt.Fatalf("counted %d/%d, verified %v; the plan has %d/%d", r.C1, r.C2, r.Verified, cost.C1, cost.C2)
		}
	})
}
