package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/internal/mutation/mutant"
)

// module writes a module of these files, with package mutant in it.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mode.go", "mutant.go"} {
		data, err := os.ReadFile(filepath.Join("mutant", name))
		if err != nil {
			t.Fatal(err)
		}
		files[runtimeDir+"/"+name] = string(data)
	}
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// cases are bodies of functions, what they return, and what each mutant returns, by its
// change: there may be no other.
var cases = []struct {
	body, want string
	mutants    map[string]string
}{
	{`x := two(); return x < 2`, "false", map[string]string{"x < 2 → x >= 2": "true", "x < 2 → x <= 2": "true", "2 → 3": "true"}},
	{`x := two(); return x > named`, "false", map[string]string{"x > named → x <= named": "true", "x > named → x >= named": "true"}},
	{`x := half(); return x <= 0.5`, "true", map[string]string{"x <= 0.5 → !(x <= 0.5)": "false", "x <= 0.5 → x < 0.5": "false"}},
	{`x := half(); return x >= 0.5 == yes()`, "true", map[string]string{
		"x >= 0.5 → !(x >= 0.5)": "false", "x >= 0.5 → x > 0.5": "false", "x >= 0.5 == yes() → x >= 0.5 != yes()": "false",
	}},
	{`var e error; return e == nil`, "true", map[string]string{"e == nil → e != nil": "false"}},
	{`return two() + 1<<two()`, "6", map[string]string{"two() + 1<<two() → two() - 1<<two()": "-2", "1 << two() → 1 >> two()": "2", "1 → 2": "10"}},
	{`const one = 1; return uint64(two()) | one<<(61+two())`, "9223372036854775810", map[string]string{
		"uint64(two()) | one<<(61+two()) → uint64(two()) & one<<(61+two())": "0",
		"one << (61+two()) → one >> (61+two())":                             "2",
		"61 + two() → 61 - two()":                                           "576460752303423490",
		"61 → 62":                                                           "2",
	}},
	{`return "a" + string(rune('a'+two()))`, "ac", map[string]string{"'a' + two() → 'a' - two()": "a_"}},
	{`x := two(); return -x * 3 / 2 % 2`, "-1", map[string]string{
		"-x → x": "1", "-x * 3 → -x + 3": "0", "-x * 3 / 2 → -x * 3 * 2": "0", "-x * 3 / 2 % 2 → -x * 3 / 2 * 2": "-6",
		"3 → 4": "0", "2 → 3": "0", "2 → 3 #2": "0",
	}},
	{`x := two(); return []int{x & 3, x ^ 3, 3 &^ x, x >> 1, x - 1}`, "[2 1 1 1 1]", map[string]string{
		"x & 3 → x | 3": "[3 1 1 1 1]", "x ^ 3 → x | 3": "[2 3 1 1 1]", "3 &^ x → 3 & x": "[2 1 2 1 1]",
		"x >> 1 → x << 1": "[2 1 1 4 1]", "x - 1 → x + 1": "[2 1 1 1 3]",
		"3 → 4": "[0 1 1 1 1]", "3 → 4 #2": "[2 6 1 1 1]", "3 → 4 #3": "[2 1 4 1 1]", "1 → 2": "[2 1 1 0 1]", "1 → 2 #2": "[2 1 1 1 0]",
	}},
	{`t, f := yes(), !yes(); return t && f`, "false", map[string]string{"t && f → t || f": "true", "t → !t": "false", "f → !f": "true", "!yes() → yes()": "true"}},
	{`return yes() || boom()`, "true", map[string]string{"yes() || boom() → yes() && boom()": "panic", "yes() → !yes()": "panic", "boom() → !boom()": "true"}},
	{`return !yes() && boom()`, "false", map[string]string{"!yes() && boom() → !yes() || boom()": "panic", "!yes() → yes()": "panic", "boom() → !boom()": "false"}},
	{`var b boolean = two() < 3; return b && boolean(yes())`, "true", map[string]string{"two() < 3 → two() >= 3": "false", "two() < 3 → two() <= 3": "true", "3 → 4": "true"}},
	{`if x := two(); x != 2 { return "if" } else if yes() { return "else" }; return ""`, "else", map[string]string{"x != 2 → x == 2": "if", "2 → 3": "if", "yes() → !yes()": ""}},
	{`n := 0; for i := range 5 { if i == 2 { continue }; n += i }; return n`, "8", map[string]string{
		"0 → 1": "9", "5 → 6": "13", "i == 2 → i != 2": "2", "2 → 3": "7", "continue → break": "1", "n += i → (removed)": "0",
	}},
	{`n := 0; for i := 0; i < 4; i++ { switch { case i == 2: break; default: n++ }; n++ }; return n`, "7", map[string]string{
		"0 → 1": "8", "0 → 1 #2": "5", "i < 4 → i >= 4": "0", "i < 4 → i <= 4": "9", "4 → 5": "9", "i == 2 → i != 2": "5", "2 → 3": "7",
		"break → continue": "6", "n++ → (removed)": "4", "n++ → (removed) #2": "3",
	}},
	{"n := two()\nloop:\n\tfor { for { n--; if n < 0 { break loop }; if n == 0 { continue loop } } }\n\treturn n", "-1", map[string]string{
		"n-- → (removed)": "timeout", "n < 0 → n >= 0": "1", "n < 0 → n <= 0": "0", "0 → 1": "0", "break loop → continue loop": "timeout",
		"n == 0 → n != 0": "-1", "0 → 1 #2": "-1",
	}},
	{`x := two(); switch { case x == 2: return "two" }; return "other"`, "two", map[string]string{"x == 2 → x != 2": "other", "2 → 3": "other"}},
	{`x := two(); switch x { case 1, 2: return "small" }; return "large"`, "small", map[string]string{}},
	{`c := make(chan int, 1); c <- 3; select { case x := <-c: return x; default: return "none" }`, "3", map[string]string{"1 → 2": "3", "c <- 3 → (removed)": "none", "3 → 4": "4"}},
	{`var x any = 3; switch y := x.(type) { case int: return y + 1 }; return nil`, "4", map[string]string{"3 → 4": "5", "y + 1 → y - 1": "2", "1 → 2": "5"}},
	{`a := [...]int{2: 5}; return a[2]`, "5", map[string]string{"5 → 6": "6", "2 → 3": "panic"}},
	{`var d duration = 3; int := int(d); return int`, "3", map[string]string{"3 → 4": "4"}},
	{`const c = 3; var a [c + 1]int; return fmt.Sprintf("%d", len(a)+two())`, "6", map[string]string{}},
	{`m := map[int]int{1: 1}; delete(m, 1); return len(m)`, "0", map[string]string{"1 → 2": "0", "delete(m, 1) → (removed)": "1", "1 → 2 #2": "1"}},
	{`return func() bool { return true }()`, "true", map[string]string{"true → false": "false"}},
	{`return larger(two(), 1) + generic(two())`, "5", map[string]string{"larger(two(), 1) + generic(two()) → larger(two(), 1) - generic(two())": "-1", "1 → 2": "5"}},
	{`return (time.Duration(two()) * time.Second).String()`, "2s", map[string]string{
		"time.Duration(two()) * time.Second → time.Duration(two()) + time.Second": "1.000000002s",
	}},
}

// caseProgram returns the source of a program that prints what the function of a case returns.
func caseProgram() string {
	var b strings.Builder
	b.WriteString(`package main

import ("fmt"; "os"; "time")

const named = 2

type duration int64
type boolean bool

func two() int { return named }
func half() float64 { return 0.5 }
func yes() bool { return len(os.Args) > 0 }
func boom() bool { panic("evaluated") }
func larger[T int | float64](a, b T) T { if a > b { return a }; return b }
func generic[T ~int | ~uint](x T) T { if x < 0 { return 0 }; return x + 1 }

func main() {
	defer func() { if recover() != nil { fmt.Print("panic") } }()
	var n int
	fmt.Sscan(os.Args[1], &n)
	fmt.Print(bodies[n]())
}

var _ time.Duration
var bodies = [...]func() any{`)
	for i := range cases {
		fmt.Fprintf(&b, "case%d, ", i)
	}
	b.WriteString("}\n")
	for i, c := range cases {
		fmt.Fprintf(&b, "\nfunc case%d() any {\n\t%s\n}\n", i, c.body)
	}
	return b.String()
}

// TestMutants builds a program once and runs it without mutants and with each.
func TestMutants(t *testing.T) {
	t.Parallel()
	root := module(t, map[string]string{"main.go": caseProgram()})
	prog, err := load(root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	overlay, _, err := prog.overlay(filepath.Join(root, "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "program")
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, prog.files["main.go"])
	}
	run := func(i int, id uint32) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, fmt.Sprint(i))
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutant.Variable, id))
		out, err := cmd.Output()
		if ctx.Err() != nil {
			return "timeout"
		}
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	for i, c := range cases {
		if got := run(i, 0); got != c.want {
			t.Errorf("%s\nreturns %s with no mutant, want %s", c.body, got, c.want)
		}
		left := maps.Clone(c.mutants)
		for _, p := range prog.points {
			if p.Function != fmt.Sprintf("case%d", i) {
				continue
			}
			want, ok := left[p.Change()]
			delete(left, p.Change())
			if got := run(i, p.ID); !ok || got != want {
				t.Errorf("%s\nhas the mutant %s, which returns %q, want %q (%v)", c.body, p.Change(), got, want, ok)
			}
		}
		for change := range left {
			t.Errorf("%s\nhas no mutant %s", c.body, change)
		}
	}
}

// TestRun runs the whole on a module with a mutant of each fate.
func TestRun(t *testing.T) {
	t.Parallel()
	root := module(t, map[string]string{
		"a/a.go": `package a

func Killed() int { return 1 }

func Survives() int {
	n := 0
	n++
	return n
}

func Unreached() bool { return true }

func Loops(n int) int {
	for n > 0 {
		n--
	}
	return n
}
`,
		"a/a_test.go": `package a

import "testing"

func TestKilled(t *testing.T) {
	if Killed() != 1 {
		t.Errorf("wrong") // the process ends here
		select {}
	}
	Survives()
}

func TestBroken(t *testing.T) { t.Fatal("always") }

func ExampleLoops() {
	Loops(3)
	// Output:
}
`,
		"b/b_test.go": `package b

import (
	"testing"

	"example/a"
)

func FuzzSurvives(f *testing.F) {
	f.Add(3)
	f.Fuzz(func(t *testing.T, n int) { t.Log("no error.Errorf(") ; a.Survives() })
}
`,
		"explained.txt": "# reasons\n" +
			"a/a.go | Survives | 0 → 1 | nobody looks\n" +
			"a/a.go | Killed | 1 → 2 | a wrong one\n" +
			"a/a.go | Gone | a | b → a & b | another\n" +
			"gone/gone.go | Gone | 1 → 2 | a file that is gone\n" +
			"b/b_test.go | Elsewhere | 1 → 2 | of a package that was not loaded\n",
	})
	c := &config{dir: t.TempDir(), root: root, workers: 2, budget: time.Minute, memory: 6 << 30, patience: 5, tests: "./...", only: regexp.MustCompile(""), explained: filepath.Join(root, "explained.txt")}
	var out strings.Builder
	c.out = &out
	if err := c.run([]string{"./a"}); err != nil {
		t.Fatal(err)
	}
	all, err := readOutcomes(c.results())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range all {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", o.Function, o.Change(), o.Outcome, o.Test)))
	}
	want := []string{
		"Killed 1 → 2: killed example/a TestKilled",
		"Survives 0 → 1: survived",
		"Survives n++ → (removed): survived",
		"Unreached true → false: not reached",
		"Loops n > 0 → n >= 0: survived",
		"Loops n > 0 → n <= 0: survived",
		"Loops 0 → 1: survived",
		"Loops n-- → (removed): timeout example/a ExampleLoops",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range []string{
		"all        8       1          1         5            1          1                  28.6%",
		"left out, for it fails with no mutant: example/a TestBroken",
		"explained, but killed by example/a TestKilled: a/a.go | Killed | 1 → 2",
		"explained, but there is no such mutant: a/a.go | Gone | a | b → a & b",
		"explained, but there is no such mutant: gone/gone.go | Gone | 1 → 2",
	} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("the table has no %q:\n%s", s, out.String())
		}
	}
	if strings.Contains(out.String(), "Elsewhere") {
		t.Errorf("the table has an explanation of a package that was not loaded:\n%s", out.String())
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "survivors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if s := "a/a.go:7:2: Survives: remove: n++ → (removed)\n\tn++\n"; !strings.Contains(string(text), s) || strings.Contains(string(text), "0 → 1\n\tn := 0") {
		t.Errorf("survivors:\n%s", text)
	}

	// The source is as it was, so there is nothing left to do.
	c.resume = true
	before, _ := os.ReadFile(c.results())
	if err := os.WriteFile(filepath.Join(root, "a/a_test.go"), []byte("package a\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := c.run([]string{"./a"}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(c.results()); string(before) != string(after) {
		t.Errorf("resumed: got\n%s\nwant\n%s", after, before)
	}
}

// TestBatches checks the order and grouping of tests.
func TestBatches(t *testing.T) {
	own, other := &testBinary{Package: "own"}, &testBinary{Package: "other"}
	var got []string
	for _, b := range batches("own", []*test{
		{Name: "A", Took: time.Second, binary: other}, {Name: "B", Took: time.Millisecond, binary: other}, {Name: "C", Took: 2 * time.Second, binary: own},
		{Name: "D", Took: 2 * time.Millisecond, binary: own}, {Name: "E", Took: time.Millisecond, binary: own},
	}) {
		got = append(got, fmt.Sprint(b.binary.Package, b.names, b.took))
	}
	want := []string{"own[E D] 3ms", "own[C] 2s", "other[B] 1ms", "other[A] 1s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
