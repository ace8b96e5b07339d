package claims

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
	printed := reach(func(round int) int { return raised(window, round) })
	if len(printed) != 8 {
		t.Errorf("as printed, the packets of %d processors reach a result", len(printed))
	}
	correct := reach(func(round int) int { return window * raised(2, round-1) })
	for o := range processors {
		if correct[o] != 1 {
			t.Errorf("corrected, offset %d is reached %d times", o, correct[o])
		}
	}
}

// shootOf returns the rounds of the paper's prepare-and-shoot, and m and n, for K > 1.
func shootOf(k, p int) (prepare, shoot, m, n int) {
	l := ceilLog(k, p+1) - 1 // the paper's L: the largest with (p+1)^L < K
	prepare, shoot = l/2+1, l/2
	if l%2 == 1 {
		prepare, shoot = (l+1)/2, (l+1)/2
	}
	return prepare, shoot, raised(p+1, prepare), raised(p+1, shoot)
}

// ceilLog returns the least t with base^t >= n.
func ceilLog(n, base int) int {
	t := 0
	for v := 1; v < n; v *= base {
		t++
	}
	return t
}

func raised(base, exponent int) int {
	v := 1
	for range exponent {
		v *= base
	}
	return v
}

// TestPaperOverlap counts the packets that as the paper says are summed up twice where
// K < m·n: m·n - K of them, and not the m·n of the interval [k-mn+1, k]. For p = 1 they are a set, for more ports a
// packet may be there several times. (n-1)·m is not always below K.
func TestPaperOverlap(t *testing.T) {
	overlap := func(k, p int) (times []int, total int, below bool) {
		_, _, m, n := shootOf(k, p)
		times = make([]int, k) // by the offset of a packet from the result
		for stride := range n {
			for i := range m {
				times[(stride*m+i)%k]++
			}
		}
		return times, m*n - k, (n-1)*m < k
	}
	for p := 1; p <= 8; p++ {
		for k := 2; k <= 1100; k++ {
			times, total, _ := overlap(k, p)
			again := 0
			for o, n := range times {
				again += n - 1
				if want := (total + k - o + k - 1) / k; n != want {
					t.Fatalf("K = %d, p = %d: the packet at offset %d counts %d times, want %d", k, p, o, n, want)
				}
			}
			if again != total || p == 1 && slices.Max(times) > 2 {
				t.Errorf("K = %d, p = %d: %d packets too many, want %d; one is there %d times", k, p, again, total, slices.Max(times))
			}
		}
	}
	for _, c := range []struct {
		k, p, total, least, most int
		below                    bool // (n-1)·m < K
	}{{3, 1, 1, 1, 2, true}, {9, 1, 7, 1, 2, false}, {10, 2, 17, 2, 3, false}, {17, 3, 47, 3, 4, false}} {
		times, total, below := overlap(c.k, c.p)
		if total != c.total || slices.Min(times) != c.least || slices.Max(times) != c.most || below != c.below {
			t.Errorf("K = %d, p = %d: %d packets are counted again: %v; (n-1)·m < K is %t", c.k, c.p, total, times, below)
		}
	}
}

// TestPaperTree has ρ in [0, p-1] in the tree of Lemma 3's proof, as printed, and in [1, p]. As printed no tree grows
// where p = 1, and none has the m processors of the lemma.
func TestPaperTree(t *testing.T) {
	tree := func(p, rounds, first int) map[int]bool {
		reached := map[int]bool{0: true}
		for round := 1; round <= rounds; round++ {
			for _, r := range slices.Collect(maps.Keys(reached)) {
				for port := range p {
					reached[r+(first+port)*raised(p+1, rounds-round)] = true
				}
			}
		}
		return reached
	}
	for p := 1; p <= 4; p++ {
		for rounds := 1; rounds <= 4; rounds++ {
			m := raised(p+1, rounds)
			if got := tree(p, rounds, 1); len(got) != m || slices.Max(slices.Collect(maps.Keys(got))) != m-1 {
				t.Errorf("p = %d, %d rounds: corrected, the tree is %v", p, rounds, got)
			}
			if got := tree(p, rounds, 0); len(got) != raised(p, rounds) {
				t.Errorf("p = %d, %d rounds: as printed, the tree is %v", p, rounds, got)
			}
		}
	}
}

// TestPaperAlgorithm1 runs Algorithm 1 for K = m·n, with k + ρ·m·(p+1)^(t-1) as erratum 1 has it: processor k sends its
// w_{k,r}. Of the w_{s_out,r} that the text after it names, processor k has none.
func TestPaperAlgorithm1(t *testing.T) {
	for _, c := range []struct{ k, p int }{{4, 1}, {8, 1}, {16, 1}, {64, 1}, {9, 2}, {27, 2}, {81, 2}, {16, 3}, {64, 3}} {
		_, shoot, m, n := shootOf(c.k, c.p)
		// tree returns T_r^(t): whom r reaches after round t.
		tree := func(r, t int) []int {
			list := []int{r}
			for later := t + 1; later <= shoot; later++ {
				for _, x := range slices.Clone(list) {
					for port := 1; port <= c.p; port++ {
						list = append(list, (x+port*m*raised(c.p+1, later-1))%c.k)
					}
				}
			}
			return list
		}
		type variable struct{ of, to int }
		w := map[variable]map[int]int{} // how often it has each packet
		for k := range c.k {
			for l := range n {
				packets := map[int]int{}
				for i := range m {
					packets[(k-i+c.k)%c.k]++
				}
				w[variable{k, (k + l*m) % c.k}] = packets
			}
		}
		for round := 1; round <= shoot; round++ {
			before := map[variable]map[int]int{}
			for v, packets := range w {
				before[v] = maps.Clone(packets)
			}
			for k := range c.k {
				for port := 1; port <= c.p; port++ {
					out := (k + port*m*raised(c.p+1, round-1)) % c.k
					for _, r := range tree(out, round) {
						if _, ok := before[variable{k, r}]; !ok {
							t.Fatalf("K = %d, p = %d: processor %d has no w_{%d,%d}", c.k, c.p, k, k, r)
						}
						for x, times := range before[variable{k, r}] {
							w[variable{out, r}][x] += times
						}
					}
				}
			}
		}
		for k := range c.k {
			if got := w[variable{k, k}]; len(got) != c.k || slices.Max(slices.Collect(maps.Values(got))) != 1 {
				t.Errorf("K = %d, p = %d: result %d has %v", c.k, c.p, k, got)
			}
		}
	}
}

// TestPaperLeaf takes the polynomial x_0 + x_1·z + … apart by (7): leaf f_{k_0 … k_(H-1)} is x_k, and not x_k' as printed.
func TestPaperLeaf(t *testing.T) {
	for _, c := range []struct{ p, h int }{{1, 1}, {1, 2}, {1, 5}, {2, 2}, {2, 3}, {3, 2}} {
		processors, differ := raised(c.p+1, c.h), 0
		for k := range processors {
			list, reversed := make([]int, processors), 0
			for i := range list {
				list[i] = i
			}
			for digit, rest := 0, k; digit < c.h; digit++ {
				var child []int // the coefficients d = k_digit mod p+1
				for d := rest % (c.p + 1); d < len(list); d += c.p + 1 {
					child = append(child, list[d])
				}
				reversed = reversed*(c.p+1) + rest%(c.p+1)
				list, rest = child, rest/(c.p+1)
			}
			if !slices.Equal(list, []int{k}) {
				t.Errorf("p = %d, H = %d: leaf %d is %v", c.p, c.h, k, list)
			}
			if reversed != k {
				differ++
			}
		}
		if (differ > 0) != (c.h > 1) { // K = 4, p = 1: f_{01} is x_2, and not x_1
			t.Errorf("p = %d, H = %d: %d leaves differ from those printed", c.p, c.h, differ)
		}
	}
}

// TestPaperInverse undoes the rounds t = H-1 … 0 of the DFT for K = 4, p = 1, q = 5, one after the other: there is no
// round H to undo, as Lemma 5's proof says, since no processor differs from another one in digit H.
func TestPaperInverse(t *testing.T) {
	const processors, digits, q, beta = 4, 2, 5, 2
	mod := func(v int) int { return (v%q + q) % q }
	root := func(exponent int) int { return raised(beta, exponent%processors) % q }
	for i := range processors {
		value := make([]int, processors)
		for k := range processors {
			value[k] = root(i * k) // row i of the matrix: Q(k,H)
		}
		for stage := digits - 1; stage >= 0; stage-- {
			next := make([]int, processors)
			for low := range processors {
				high := low | 1<<stage
				if low == high {
					continue
				}
				// (Q(low), Q(high)) = A·(x, y) with A = [1 γ; 1 -γ], as 2·3 = 1 and 1/γ is γ^3.
				gamma := root((low % (1 << stage)) << (digits - stage - 1))
				next[low] = mod(3 * (value[low] + value[high]))
				next[high] = mod(3 * gamma * gamma * gamma * (value[low] - value[high]))
			}
			value = next
		}
		want := make([]int, processors)
		want[i>>1|i&1<<1] = 1 // erratum 3
		if !slices.Equal(value, want) {
			t.Errorf("row %d comes back as %v", i, value)
		}
	}
	for k := range processors {
		if partner := k | 1<<digits; partner < processors {
			t.Errorf("in round H processor %d has partner %d", k, partner)
		}
	}
}

// TestPaperCosets counts the Vandermonde matrices of Theorem 3: C((q-1)/Z, M) sets of points, for each M! choices of φ.
// draw-and-loose computes each at the theorem's cost.
func TestPaperCosets(t *testing.T) {
	for _, c := range []struct{ q, generator, k, h, sets, maps int }{
		{13, 2, 8, 2, 3, 6}, {13, 2, 6, 1, 20, 120}, {13, 2, 4, 2, 3, 3}, {17, 3, 12, 2, 4, 24},
	} { // p = 1
		z := raised(2, c.h)
		m, number := c.k/z, (c.q-1)/z
		exponent := func(e int) int {
			v := 1
			for range e {
				v = v * c.generator % c.q
			}
			return v
		}
		sets, count := map[string][]int{}, 0
		var choose func(phi []int)
		choose = func(phi []int) {
			if len(phi) < m {
				for e := range number {
					if !slices.Contains(phi, e) {
						choose(append(slices.Clone(phi), e))
					}
				}
				return
			}
			count++
			var points []int
			for _, e := range phi {
				for j := range z {
					points = append(points, exponent(e+j*number))
				}
			}
			sets[strings.Trim(fmt.Sprint(slices.Sorted(slices.Values(points))), "[]")] = points
		}
		choose(nil)
		if len(sets) != c.sets || count != c.maps {
			t.Errorf("q = %d, K = %d: %d sets, want %d; %d maps φ, want %d", c.q, c.k, len(sets), c.sets, count, c.maps)
		}
		name := filepath.Join(t.TempDir(), "points")
		c1, c2 := drawAndLoose(c.k, c.q, 1)
		for set, points := range sets {
			if sorted := slices.Compact(slices.Sorted(slices.Values(points))); len(sorted) != c.k {
				t.Fatalf("points %v", points)
			}
			if err := os.WriteFile(name, []byte(strings.Trim(fmt.Sprint(points), "[]")), 0o666); err != nil {
				t.Fatal(err)
			}
			out := volley(t, "plan", "--model", "paper", "-k", strconv.Itoa(c.k), "--field", strconv.Itoa(c.q), "--matrix", "vandermonde", "--points", name, "--algorithm", "draw-and-loose", "--order", "any") // up to permutation of columns
			if !strings.Contains(out, fmt.Sprintf("C1 = %d rounds", c1)) || !strings.Contains(out, fmt.Sprintf("C2 = %d packets", c2)) {
				t.Errorf("q = %d, points %s: want C1 = %d, C2 = %d:\n%s", c.q, set, c1, c2, out)
			}
		}
	}
}

// prepareAndShoot returns the paper's C1 and C2, with errata 2 and 5 mended.
func prepareAndShoot(k, p int) (c1, c2 int) {
	if k == 1 {
		return 0, 0
	}
	prepare, shoot, m, n := shootOf(k, p)
	return prepare + shoot, (m-1)/p + (n-1)/p
}

// drawAndLoose returns those of Theorem 3, with H the largest such that (p+1)^H divides K and q-1.
func drawAndLoose(k, q, p int) (c1, c2 int) {
	h := 0
	for k%raised(p+1, h+1) == 0 && (q-1)%raised(p+1, h+1) == 0 {
		h++
	}
	c1, c2 = prepareAndShoot(k/raised(p+1, h), p)
	return c1 + h, c2 + h
}

// TestPaperDFT runs the stages of the paper's DFT for K = 4, p = 1, q = 5 as they are printed:
// with Q(k,0) = x_k rows 1 and 2 of the matrix are exchanged, with Q(k,0) = x_rev(k) they are
// right.
func TestPaperDFT(t *testing.T) {
	const processors, digits, q, beta = 4, 2, 5, 2
	power := func(base, exponent int) int {
		v := 1
		for range exponent {
			v = v * base % q
		}
		return v
	}
	// entry returns what result k has of packet i, which processor start(i) begins with.
	entry := func(start func(i int) int, i, k int) int {
		value := make([]int, processors)
		value[start(i)] = 1
		for stage := range digits {
			next := make([]int, processors)
			for r := range processors {
				gamma := power(power(beta, r%(2<<stage)), 1<<(digits-stage-1))
				for digit := range 2 {
					partner := r&^(1<<stage) | digit<<stage
					next[r] = (next[r] + power(gamma, digit)*value[partner]) % q
				}
			}
			value = next
		}
		return value[k]
	}
	printed := func(i int) int { return i }
	reversed := func(i int) int { return i>>1 | i&1<<1 }
	for i := range processors {
		for k := range processors {
			if got := entry(reversed, i, k); got != power(beta, i*k) {
				t.Errorf("corrected, entry %d, %d is %d", i, k, got)
			}
			if got := entry(printed, i, k); got != power(beta, reversed(i)*k) {
				t.Errorf("as printed, entry %d, %d is %d", i, k, got)
			}
		}
	}
}

// TestPaperFactor compares prepare-and-shoot with the paper's lower bound: the ratio is below √2
// for even powers of p+1, and above 2 elsewhere. Messages of prepare grow (p+1)-fold. What Remark 3 says holds with a
// constant for each p: C2 < (p+2)·√K/p, which K = (p+1)^L + 1 for even L comes near to.
func TestPaperFactor(t *testing.T) {
	for p := 1; p <= 8; p++ {
		for k := 2; k <= 4100; k++ {
			c1, c2 := prepareAndShoot(k, p)
			if c1 != ceilLog(k, p+1) || c2*c2*p*p >= (p+2)*(p+2)*k {
				t.Errorf("K = %d, p = %d: C1 = %d, C2 = %d", k, p, c1, c2)
			}
		}
		k := raised(p+1, 8) + 1
		if _, c2 := prepareAndShoot(k, p); 100*c2*c2*p*p < 94*94*(p+2)*(p+2)*k/100 {
			t.Errorf("K = %d, p = %d: C2 = %d", k, p, c2)
		}
	}
	counted := func(k string) (bound, c2 int) {
		lines := strings.Split(strings.TrimSpace(volley(t, "cost", "-k", k, "--algorithm", "prepare-and-shoot", "--format", "csv")), "\n")
		names, cells := strings.Split(lines[0], ","), strings.Split(lines[1], ",")
		value := func(name string) int {
			n, err := strconv.Atoi(cells[slices.Index(names, name)])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		return value("bound_C2"), value("prepare-and-shoot_C2")
	}
	for _, k := range []string{"16", "64", "256", "1024"} {
		if bound, c2 := counted(k); c2*c2 > 2*bound*bound {
			t.Errorf("K = %s: %d packets are more than √2 times %d", k, c2, bound)
		}
	}
	if bound, c2 := counted("1025"); bound != 45 || c2 != 94 {
		t.Errorf("K = 1025: %d packets, the bound is %d", c2, bound)
	}
	if out := volley(t, "plan", "--model", "paper", "-k", "27", "-p", "2", "--algorithm", "prepare-and-shoot"); !strings.Contains(out, "C2 = 5 packets = 1 + 3 + 1") {
		t.Errorf("K = 27, p = 2: %s", out)
	}
}

// TestPaperPoints shows Vandermonde matrices that draw-and-loose does not compute.
func TestPaperPoints(t *testing.T) {
	for _, points := range []string{"powers", "codes"} { // 1 and 2; 0 and 1
		if _, errs, code := run("plan", "-k", "2", "--field", "5", "--matrix", "vandermonde", "--points", points, "--algorithm", "draw-and-loose"); code != 2 || !strings.Contains(errs, "no such structure") {
			t.Errorf("%s: exit %d, %s", points, code, errs)
		}
	}
	volley(t, "plan", "-k", "2", "--field", "5", "--matrix", "vandermonde", "--algorithm", "draw-and-loose") // 1 and 4
}

// TestPaperFigure1 shows that the caption of figure 1 sends too little: processor 1 has a_01·x_0
// from processor 0, and has to pass a_03·x_0 on to processor 3. Here a_01 is 0 and a_03 is not.
func TestPaperFigure1(t *testing.T) {
	a := []string{"--field", "7", "--matrix", "random:27", "-k", "4"}
	if out := volley(t, append([]string{"matrix"}, a...)...); !strings.Contains(out, "5,0,2,4\n") {
		t.Errorf("the matrix is\n%s", out)
	}
	out := volley(t, append([]string{"plan", "--model", "paper", "--algorithm", "prepare-and-shoot", "--processor", "1"}, a...)...)
	if !strings.Contains(fold(out), "receive from 0 on port 0: s1 round 1 shoot s2 = 6·s0 + 4·s1 send to 3") {
		t.Errorf("processor 1 does not pass on x_0:\n%s", out)
	}
}

// TestPaperFigures compares schedules with the captions of figures 2 and 3.
func TestPaperFigures(t *testing.T) {
	// partners returns to whom processor k sends, or from whom it receives, in a round.
	partners := func(k, processor, round int, to string) []int {
		out := volley(t, "plan", "--model", "paper", "-k", strconv.Itoa(k), "-p", "2", "--algorithm", "prepare-and-shoot", "--processor", strconv.Itoa(processor))
		_, out, _ = strings.Cut(out, "round "+strconv.Itoa(round))
		out, _, _ = strings.Cut(out, "round "+strconv.Itoa(round+1))
		var list []int
		for _, m := range regexp.MustCompile(to+` (\d+) `).FindAllStringSubmatch(out, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
		slices.Sort(list)
		return list
	}
	if got := partners(27, 0, 0, "send to"); !slices.Equal(got, []int{3, 6}) {
		t.Errorf("figure 2: in the first round processor 0 sends to %v", got)
	}
	for _, processor := range []int{0, 3, 6} {
		if got := partners(27, processor, 1, "send to"); !slices.Equal(got, []int{processor + 1, processor + 2}) {
			t.Errorf("figure 2: in the second round processor %d sends to %v", processor, got)
		}
	}
	for k, want := range map[int][]int{65: {2, 11, 20, 29, 38, 47, 56, 58}, 66: {3, 12, 21, 30, 39, 48, 57, 60}} {
		senders := map[int]bool{} // whose sums reach processor 0
		last := partners(k, 0, 3, "receive from")
		for _, r := range append(last, 0) {
			for _, s := range partners(k, r, 2, "receive from") {
				senders[s] = true
			}
		}
		for _, s := range last {
			senders[s] = true
		}
		if got := slices.Sorted(maps.Keys(senders)); !slices.Equal(got, want) {
			t.Errorf("figure 3 for K = %d: processor 0 gets sums of %v", k, got)
		}
	}
}

// TestPaperNumbers compares the table of numbers that differ from the paper's formulas with its rows, computed.
func TestPaperNumbers(t *testing.T) {
	body, _, _ := strings.Cut(read(t, filepath.Join(repository(t), "docs", "paper.md")), "\n## The sequel\n")
	_, body, _ = strings.Cut(body, "\n## Numbers that differ\n")
	rows := numbersThatDiffer(t)
	for _, row := range rows {
		if !strings.Contains(body, "\n"+row) {
			t.Errorf("docs/paper.md lacks the row\n%s", row)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^\| (Theorem|Remark) `).FindAllString(body, -1)); n != len(rows) {
		t.Errorf("docs/paper.md has %d rows of numbers that differ, want %d", n, len(rows))
	}
}

// numbersThatDiffer computes the rows but for their last column: the paper's formulas, written out here, beside what
// Volley plans.
func numbersThatDiffer(t *testing.T) (rows []string) {
	t.Helper()
	type numbers func() (c1, c2 int)
	lagrange := func(k, q int) numbers { // Theorem 4
		return func() (int, int) { c1, c2 := drawAndLoose(k, q, 1); return 2 * c1, 2 * c2 }
	}
	vandermonde := func(k, q, p int) numbers { return func() (int, int) { return drawAndLoose(k, q, p) } }
	universal := func(k, p int) numbers { return func() (int, int) { return prepareAndShoot(k, p) } }
	for _, c := range []struct {
		item, problem, algorithm string
		flags                    string
		paper                    numbers
	}{
		{"Theorem 1", "K = 17", "universal", "-k 17", universal(17, 1)},
		{"Theorem 1", "K = 100", "universal", "-k 100", universal(100, 1)},
		{"Theorem 1", "K = 100, p = 2", "universal", "-k 100 -p 2", universal(100, 2)},
		{"Theorem 2", "K = 64, q = 257, natural order", "dft", "-k 64 --field 257 --matrix dft", vandermonde(64, 257, 1)},
		{"Theorem 3", "K = 30, q = 31", "draw-and-loose", "-k 30 --field 31 --matrix vandermonde", vandermonde(30, 31, 1)},
		{"Theorem 3", "K = 36, q = 37", "draw-and-loose", "-k 36 --field 37 --matrix vandermonde", vandermonde(36, 37, 1)},
		{"Theorem 3", "K = 60, q = 61", "draw-and-loose", "-k 60 --field 61 --matrix vandermonde", vandermonde(60, 61, 1)},
		{"Theorem 4", "K = 64, q = 257", "folded-lagrange", "-k 64 --field 257 --matrix lagrange", lagrange(64, 257)},
		{"Remark 1", "K = 5, N = 25", "sinks", "-k 5 --sinks 25 --matrix random:1", func() (int, int) {
			c1, c2 := prepareAndShoot(5, 1)
			return ceilLog(25/5, 2) + c1, ceilLog(25/5, 2) + c2
		}},
	} {
		args := append([]string{"cost", "--model", "paper", "--algorithm", c.algorithm, "--format", "csv"}, strings.Fields(c.flags)...)
		lines := strings.Split(strings.TrimSpace(volley(t, args...)), "\n")
		names, cells := strings.Split(lines[0], ","), strings.Split(lines[1], ",")
		cell := func(name string) string { return cells[slices.Index(names, c.algorithm+"_"+name)] }
		c1, c2 := c.paper()
		paper, ours := fmt.Sprintf("%d/%d", c1, c2), cell("C1")+"/"+cell("C2")
		if paper == ours {
			t.Errorf("%s, %s: no difference: leave the row out", c.item, c.problem)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | `%s` | %s | %s |", c.item, c.problem, c.algorithm, paper, ours))
	}
	return rows
}

// TestPaper checks docs/paper.md: it has every numbered item of the paper and nine errata, each
// with a test or command, and what it says implements an item is there. TestNames checks the
// tests that it names, TestShellBlocks and TestInlineCommands run its commands.
func TestPaper(t *testing.T) {
	root := repository(t)
	text := read(t, filepath.Join(root, "docs", "paper.md"))
	body, errata, ok := strings.Cut(text, "\n## Errata\n")
	if !ok {
		t.Fatal("docs/paper.md has no errata")
	}
	items := map[string]int{"Definition": 1, "Lemma": 6, "Theorem": 4, "Remark": 5, "Algorithm": 1, "Figure": 4}
	algorithms := volley(t, "algorithms")
	seen := map[string]bool{}
	for line := range strings.Lines(body) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "item" {
			continue
		}
		for _, m := range regexp.MustCompile(`([A-Z][a-z]+) ([0-9])`).FindAllStringSubmatch(cells[1], -1) {
			seen[m[0]] = true
		}
		if !strings.Contains(cells[3], "`Test") {
			t.Errorf("no test: %s", line)
		}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			if !implemented(t, root, algorithms, m[1]) {
				t.Errorf("there is no %s: %s", m[1], line)
			}
		}
	}
	for kind, n := range items {
		for i := range n {
			if item := kind + " " + strconv.Itoa(i+1); !seen[item] {
				t.Errorf("docs/paper.md says nothing about %s", item)
			}
		}
	}
	errata, _, _ = strings.Cut(errata, "\n## ")
	n := 0
	for line := range strings.Lines(errata) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.TrimSpace(cells[1]) != strconv.Itoa(n+1) {
			continue
		}
		n++
		if !strings.Contains(cells[4], "`Test") {
			t.Errorf("no test: %s", line)
		}
	}
	if n != 9 {
		t.Errorf("%d errata", n)
	}
}

// implemented reports whether there is what docs/paper.md names: an algorithm, a folder or file, a
// flag, a command, or a name that a package exports.
func implemented(t *testing.T, root, algorithms, name string) bool {
	t.Helper()
	if strings.HasPrefix(name, "--") || strings.HasPrefix(name, "volley ") { // see TestInlineCommands
		return true
	}
	if regexp.MustCompile(`(?m)^(  parts .*)?\b` + regexp.QuoteMeta(name) + `(,|\s)`).MatchString(algorithms) {
		return true
	}
	if _, err := os.Stat(filepath.Join(root, name)); err == nil {
		return true
	}
	dir, exported, ok := strings.Cut(name, ".")
	if dir == "volley" {
		dir = "."
	}
	sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return ok && slices.ContainsFunc(sources, func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && regexp.MustCompile(`(?m)^(func|type) `+exported+`\b`).MatchString(read(t, path))
	})
}
