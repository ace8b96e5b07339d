package claims

import (
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

// TestPaperOverlap counts the packets that as the paper says are summed up twice where
// K < m·n: m·n - K of them, and not the m·n of the interval [k-mn+1, k]. (n-1)·m is not always
// below K.
func TestPaperOverlap(t *testing.T) {
	for _, c := range []struct {
		k, window, strides, twice int
		below                     bool // (n-1)·m < K
	}{{3, 2, 2, 1, true}, {9, 4, 4, 7, false}} { // p = 1
		times := make([]int, c.k) // by the offset of a packet from the result
		for stride := range c.strides {
			for i := range c.window {
				times[(stride*c.window+i)%c.k]++
			}
		}
		twice := 0
		for _, n := range times {
			twice += n - 1
		}
		if twice != c.twice || twice != c.window*c.strides-c.k {
			t.Errorf("K = %d: %d packets are counted twice", c.k, twice)
		}
		if below := (c.strides-1)*c.window < c.k; below != c.below {
			t.Errorf("K = %d: (n-1)·m < K is %t", c.k, below)
		}
	}
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
// for even powers of p+1, and above 2 elsewhere. Messages of prepare grow (p+1)-fold.
func TestPaperFactor(t *testing.T) {
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
	if regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\s`).MatchString(algorithms) {
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
