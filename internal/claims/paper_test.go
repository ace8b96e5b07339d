package claims

import "testing"

// TestPaperShoot shows where the paper's prepare-and-shoot goes wrong as it is printed: after
// prepare, processor k has the packets of offsets 0 … m-1; in round t of shoot it sends what it
// has to k + ρ·m^t. Those rounds lead to few of all offsets. To k + ρ·m·(p+1)^(t-1) they lead to
// each of K = 16 once.
func TestPaperShoot(t *testing.T) {
	const processors, window, rounds = 16, 4, 2 // p = 1
	reach := func(distance func(round int) int) map[int]int {
		offsets := []int{0}
		for round := 1; round <= rounds; round++ {
			for _, o := range offsets {
				offsets = append(offsets, o+distance(round))
			}
		}
		times := map[int]int{} // by the offset of a packet from the result that it reaches
		for _, o := range offsets {
			for i := range window {
				times[(o+i)%processors]++
			}
		}
		return times
	}
	power := func(base, exponent int) int {
		v := 1
		for range exponent {
			v *= base
		}
		return v
	}
	printed := reach(func(round int) int { return power(window, round) })
	if len(printed) != 8 {
		t.Errorf("as printed, the packets of %d processors reach a result", len(printed))
	}
	correct := reach(func(round int) int { return window * power(2, round-1) })
	for o := range processors {
		if correct[o] != 1 {
			t.Errorf("corrected, offset %d is reached %d times", o, correct[o])
		}
	}
}
