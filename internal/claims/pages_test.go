package claims

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	module "volley"
)

// tableRows returns the cells of the tables of a document, without space.
func tableRows(t *testing.T, document string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(read(t, filepath.Join(repository(t), "docs", document))) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells[1:len(cells)-1])
	}
	return rows
}

// TestCheckpoints computes the table of docs/checkpoints.md from that of docs/protect.md.
func TestCheckpoints(t *testing.T) {
	protected := tableRows(t, "protect.md")
	computed := 0
	for _, row := range tableRows(t, "checkpoints.md") {
		if len(row) != 7 || row[0] == "K" || row[0] == "---" {
			continue
		}
		at := slices.IndexFunc(protected, func(p []string) bool { return len(p) == 9 && slices.Equal(row[:3], p[:3]) })
		if at < 0 {
			t.Errorf("docs/protect.md has no row for %v", row)
			continue
		}
		computed++
		const data = 12.0 // GB
		value := func(text string) float64 {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		r := value(row[1])
		want := []string{
			fmt.Sprintf("%.1f", 2*data*value(row[2])), fmt.Sprintf("%.0f", 2*data*r),
			fmt.Sprintf("%.1f", data*value(protected[at][4])), fmt.Sprintf("%.0f", data*r),
		}
		if !slices.Equal(row[3:], want) {
			t.Errorf("%v: want %v", row, want)
		}
	}
	if computed < 7 {
		t.Errorf("%d rows: were they found?", computed)
	}
}

// TestIntervals computes how often docs/checkpoints.md says to protect, by Young's formula.
func TestIntervals(t *testing.T) {
	rows := 0
	for _, row := range tableRows(t, "checkpoints.md") {
		stops, err := strconv.ParseFloat(strings.TrimSuffix(row[0], " s"), 64)
		if err != nil || len(row) != 4 {
			continue
		}
		rows++
		for i, days := range []float64{1, 7, 30} {
			if want := fmt.Sprintf("%.0f min", math.Sqrt(2*stops*days*86400)/60); row[i+1] != want {
				t.Errorf("%v: %s, want %s", row, row[i+1], want)
			}
		}
	}
	if rows != 3 {
		t.Errorf("%d rows: were they found?", rows)
	}
}

// TestTraffic compares what docs/checkpoints.md measured with what algorithms send and store. Links carry headers
// and handshakes, too: 5 to 9 % more.
func TestTraffic(t *testing.T) {
	rows := 0
	for _, row := range tableRows(t, "checkpoints.md") { // K, files, tool, R, protect, stored, rebuild one, rebuild two
		if len(row) != 8 || row[0] == "K" || row[0] == "---" || strings.HasPrefix(row[2], "FTI") {
			continue
		}
		rows++
		number := func(text string) float64 {
			x, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				t.Fatalf("%v: %v", row, err)
			}
			return x
		}
		k, r := number(row[0]), number(row[3])
		sent, stored := r, r/(k-r) // of redset
		switch {
		case strings.HasPrefix(row[2], "copies"):
			stored = r
		case strings.HasPrefix(row[2], "Volley"):
			sent = (k - 1) / (k - r)
		}
		if x := number(row[4]) / sent; x < 1 || x > 1.09 {
			t.Errorf("%v: sends %.3f times what the algorithm does", row, x)
		}
		if x := number(row[5]) / stored; x < 0.99 || x > 1.03 {
			t.Errorf("%v: stores %.3f times what the algorithm does", row, x)
		}
	}
	if rows < 8 {
		t.Errorf("%d rows: were they found?", rows)
	}
}

// TestVersion checks that all places with a version have that of version.go, and that the CHANGELOG's newest is it.
func TestVersion(t *testing.T) {
	root := repository(t)
	of := func(file, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, filepath.Join(root, file)))
		if m == nil {
			t.Fatalf("no version in %s", file)
		}
		return m[1]
	}
	version, _, _ := strings.Cut(module.Version, "+") // and the commit
	next, dev := strings.CutSuffix(version, "-dev")
	if python := of("python/volley/_version.py", `__version__ = "(.+?)"`); python != version {
		t.Errorf("Python's version is %s, and that of version.go %s", python, version)
	}
	released, cited := of("CHANGELOG.md", `(?m)^## ([0-9].*) - [0-9]{4}-[0-9]{2}-[0-9]{2}$`), of("CITATION.cff", `(?m)^version: (.+)$`)
	if released != cited || (released == next) == dev {
		t.Errorf("the newest release is %s, CITATION.cff has %s, and version.go %s", released, cited, version)
	}
	if _, rest, _ := strings.Cut(read(t, filepath.Join(root, "CHANGELOG.md")), "\n## "); strings.HasPrefix(rest, "Unreleased") != dev {
		t.Errorf("CHANGELOG.md begins with %.20q, and version.go has %s", rest, version)
	}
}

// TestCitation checks that each work has the authors that the format requires.
func TestCitation(t *testing.T) {
	text := read(t, filepath.Join(repository(t), "CITATION.cff"))
	if works, authors := strings.Count(text, "title: "), strings.Count(text, "authors:\n"); works != 3 || authors != works {
		t.Errorf("%d works, of which %d have authors", works, authors)
	}
}

// TestModule makes programs in a module of their own, as docs/library.md says, and runs them without a network: the
// one of docs/first-minutes.md, and the example of package group.
func TestModule(t *testing.T) {
	t.Parallel() // with what other processes run
	root := repository(t)
	_, lines, ok := strings.Cut(read(t, filepath.Join(root, "docs", "library.md")), "\n```text\nrequire volley")
	lines, _, ok2 := strings.Cut(lines, "```\n")
	_, developer, ok3 := strings.Cut(read(t, filepath.Join(root, "docs", "first-minutes.md")), "\n## The developer\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("docs/library.md or docs/first-minutes.md lacks its block")
	}
	example := read(t, filepath.Join(root, "group", "example_test.go"))
	_, output, _ := strings.Cut(example, "\t// Output:\n")
	output, _, _ = strings.Cut(output, "}\n")
	example = strings.NewReplacer("package group_test", "package main", "func Example()", "func main()").Replace(example)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	version, _, _ := strings.Cut(strings.SplitAfterN(read(t, filepath.Join(root, "go.mod")), "\ngo ", 2)[1], "\n")
	write("go.mod", "module example.org/program\n\ngo "+version+"\n\nrequire volley"+strings.Replace(lines, "../volley", root, 1))
	write("go.sum", read(t, filepath.Join(root, "go.sum"))) // what go mod tidy would fetch is in the cache
	runs := func(want *regexp.Regexp) {
		command := exec.Command("go", "run", "-mod=mod", ".")
		command.Dir = dir
		command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil || !want.Match(out) {
			t.Errorf("%v, it prints\n%s, want\n%s", err, out, want)
		}
	}
	_, said := minutes(t, dir, developer) // and main.go
	runs(said[len(said)-1].prints)
	write("main.go", example)
	runs(regexp.MustCompile("^" + regexp.QuoteMeta(strings.ReplaceAll(output, "\t// ", "")) + "$"))
}

// TestMap checks that the map in CONTRIBUTING.md names every folder that has Go code, or a folder
// above it.
func TestMap(t *testing.T) {
	root := repository(t)
	_, table, _ := strings.Cut(read(t, filepath.Join(root, "CONTRIBUTING.md")), "\n## Map\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{".": true}
	for line := range strings.Lines(table) {
		for _, m := range code.FindAllStringSubmatch(line, -1) {
			named[m[1]] = true
		}
	}
	missing := map[string]bool{}
	files(t, root, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			return
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for up := dir; !named[up]; up = filepath.ToSlash(filepath.Dir(up)) {
			if up == "internal" || !strings.Contains(up, "/") {
				missing[dir] = true
				return
			}
		}
	})
	for dir := range missing {
		t.Errorf("the map in CONTRIBUTING.md has no %s", dir)
	}
}
