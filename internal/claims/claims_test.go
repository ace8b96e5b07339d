package claims

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"volley/internal/cli"
)

// TestClaims shows what documents claim, by what the command line prints. A directive is
//
//	claim DOCUMENT
//	words of the document
//	where a remark
//	$ volley cost -k 4 --format csv | cells K universal_C1/universal_C2
//	----
//	what the command prints
//
// DOCUMENT is a file of the repository, or help VERB. The words have to stand in it, but for
// spaces and line breaks, and each number in them in a command, in what it prints, or in the
// remark, which says how one follows from the other. Behind | is what to show of the output:
//
//	lines REGEXP       lines that match
//	columns N REGEXP   of lines that match the first N columns
//	count              how many lines there are
//	cells COLUMN …     of each row of CSV those columns; A/B are two of them, with a slash
//	keys KEY.KEY …     of JSON the values of those keys
//	means              of the table of volley cost the means of C2 over its bound
//
// Besides volley there are rm, cp, mkdir, cat, file, for one that is there, ls, with lengths, and
// manifest DIR KEY.KEY ….
//
// The directive rows has commands with names, and a template for rows of a table of DOCUMENT:
//
//	rows DOCUMENT
//	u = volley cost -k 4,8 -p 1,2 --algorithm universal --format csv
//	row | {K} | {u.front} | [{u.front@2} and more] |
//	----
//	the rows
//
// {u.front@2} is the column front of u where p is 2, or 1 without @, and K that of the row, or
// the algorithm; of a ratio three decimals. What is in brackets is left out where one of its
// values is empty. A line "as K = NAME" gives rows other names, and leaves out those without.
// All of the rows have to stand in the document.
//
//	file NAME          makes a file of the text below it
//	diagonal NAME K X  makes the file of a K×K matrix with X on its diagonal, else zeros
//
// Each file of testdata has a directory of its own, with examples/packets. Rewrite with
// -rewrite only what is meant to change, and then the document.
func TestClaims(t *testing.T) { runClaims(t, "testdata") }

// problems are what is wrong with the claims of a file, told at its end: datadriven goes no
// further after a failure.
type problems struct{ list []string }

func (p *problems) add(d *datadriven.TestData, format string, args ...any) {
	p.list = append(p.list, d.Pos+": "+fmt.Sprintf(format, args...))
}

func runClaims(t *testing.T, dir string) {
	n := 0 // claims and tables
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		root := repository(t)
		inCopy(t, root)
		var wrong problems
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			n++
			switch d.Cmd {
			case "claim":
				return claim(t, d, document(t, root, d), &wrong)
			case "rows":
				return rows(t, d, document(t, root, d), &wrong)
			case "file":
				if err := os.WriteFile(d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o666); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "diagonal":
				return diagonal(t, d)
			}
			d.Fatalf(t, "unknown directive %q", d.Cmd)
			return ""
		})
		for _, s := range wrong.list {
			t.Error(s)
		}
	})
	t.Logf("%d claims", n)
}

// diagonal writes a matrix.
func diagonal(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	k, err := strconv.Atoi(d.CmdArgs[1].Key)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var b strings.Builder
	for i := range k {
		row := slices.Repeat([]string{"0"}, k)
		row[i] = d.CmdArgs[2].Key
		b.WriteString(strings.Join(row, ",") + "\n")
	}
	if err := os.WriteFile(d.CmdArgs[0].Key, []byte(b.String()), 0o666); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return ""
}

// repository returns the folder of the module.
func repository(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// inCopy makes a copy of the examples the working directory.
func inCopy(t *testing.T, root string) {
	t.Helper()
	t.Chdir(examplesOf(t, root))
}

// examplesOf returns a new directory with the example packets and the plan.
func examplesOf(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const packets = "examples/packets"
	if err := os.CopyFS(filepath.Join(dir, packets), os.DirFS(filepath.Join(root, packets))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "examples/plan.json"), []byte(read(t, filepath.Join(root, "examples/plan.json"))), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

var spaces = regexp.MustCompile(`\s+`)

// fold makes one space of spaces and line breaks.
func fold(s string) string { return strings.TrimSpace(spaces.ReplaceAllString(s, " ")) }

// document returns the text of the document that a directive names, folded.
func document(t *testing.T, root string, d *datadriven.TestData) string {
	t.Helper()
	if len(d.CmdArgs) == 0 {
		d.Fatalf(t, "no document")
	}
	name := d.CmdArgs[0].Key
	if name != "help" {
		return fold(read(t, filepath.Join(root, name)))
	}
	var args []string
	for _, a := range d.CmdArgs[1:] {
		args = append(args, a.Key)
	}
	return fold(volley(t, append(args, "--help")...))
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// run runs the command line in this process.
func run(args ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = cli.Main(args, &out, &err)
	return out.String(), err.String(), code
}

// volley runs the command line, which has to exit with 0.
func volley(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, code := run(args...)
	if code != 0 {
		t.Errorf("volley %s: exit %d, %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// claim shows a claim, or says why it does not.
func claim(t *testing.T, d *datadriven.TestData, doc string, wrong *problems) string {
	t.Helper()
	var said, known []string
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		command, isCommand := strings.CutPrefix(line, "$ ")
		remark, isRemark := strings.CutPrefix(line, "where ")
		switch {
		case isCommand:
			known = append(known, command)
			out.WriteString(show(t, d, command))
		case isRemark:
			known = append(known, remark)
		default:
			said = append(said, line)
		}
	}
	text := fold(strings.Join(said, " "))
	if !strings.Contains(doc, text) {
		wrong.add(d, "the document has no words %q", text)
	}
	shown := strings.Join(known, "\n") + "\n" + out.String()
	for rest := text; ; {
		at := number.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		if n := rest[at[2]:at[3]]; !has(shown, n) {
			wrong.add(d, "nothing shows the %s of %q", n, text)
		}
		rest = rest[at[3]:] // what ends a number may begin the next one
	}
	return out.String()
}

// number matches 12, 1.5, 1,448 and 2^20, but no number in a name or formula, such as C1, p+1
// and 2·h.
var number = regexp.MustCompile(`(?:^|[\s(/*=≥≤<–])([0-9]+(?:(?:,[0-9]{3})+|\.[0-9]+|\^[0-9]+)?)(?:[\s/)*;:|–]|[.,](?:[^0-9]|$)|$)`)

// has reports whether a number stands in a text, as such or a power by its value.
func has(s, number string) bool {
	alike := []string{number, strings.ReplaceAll(number, ",", "")}
	if base, exponent, ok := strings.Cut(number, "^"); ok {
		b, ok1 := new(big.Int).SetString(base, 10)
		e, ok2 := new(big.Int).SetString(exponent, 10)
		if ok1 && ok2 && e.IsInt64() && e.Int64() < 100 {
			alike = append(alike, b.Exp(b, e, nil).String())
		}
	}
	for _, n := range alike {
		if regexp.MustCompile(`(^|[^0-9.]|[^0-9]\.)` + regexp.QuoteMeta(n) + `($|[^0-9.]|\.($|[^0-9]))`).MatchString(s) {
			return true
		}
	}
	return false
}

// show runs a command and returns what is to be shown of its output.
func show(t *testing.T, d *datadriven.TestData, command string) string {
	t.Helper()
	command, filter, _ := strings.Cut(command, " | ")
	args, to, err := words(command)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	out, errs, code := execute(t, args, to)
	if code != 0 {
		return fmt.Sprintf("%sexit %d\n", errs, code)
	}
	what, rest, _ := strings.Cut(strings.TrimSpace(filter), " ")
	var b strings.Builder
	switch what {
	case "":
		return unspaced(out)
	case "lines":
		pattern, err := regexp.Compile(rest)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		for line := range strings.Lines(out) {
			if pattern.MatchString(line) {
				b.WriteString(unspaced(line))
			}
		}
	case "columns":
		count, pattern, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		matching, err2 := regexp.Compile(pattern)
		if err := errors.Join(err, err2); err != nil {
			d.Fatalf(t, "%v", err)
		}
		for line := range strings.Lines(out) {
			if cells := gaps.Split(strings.TrimSpace(line), -1); matching.MatchString(line) {
				fmt.Fprintln(&b, strings.Join(cells[:min(n, len(cells))], " "))
			}
		}
	case "count":
		fmt.Fprintln(&b, strings.Count(out, "\n"))
	case "means":
		return means(table(t, d, out))
	case "cells":
		for _, row := range table(t, d, out) {
			for i, name := range strings.Fields(rest) {
				if i > 0 {
					b.WriteByte(' ')
				}
				for j, name := range strings.Split(name, "/") {
					cell, ok := row[name]
					if !ok {
						d.Fatalf(t, "%s: no column %s", command, name)
					}
					if j > 0 {
						b.WriteByte('/')
					}
					b.WriteString(cell)
				}
			}
			b.WriteByte('\n')
		}
	case "keys":
		var object any
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			d.Fatalf(t, "%s: %v", command, err)
		}
		b.WriteString(valuesAt(object, strings.Fields(rest)))
	default:
		d.Fatalf(t, "unknown filter %q", filter)
	}
	return b.String()
}

// valuesAt returns the values at paths such as files.0.name of a JSON object; null where there
// is none.
func valuesAt(object any, paths []string) string {
	var list []string
	for _, path := range paths {
		v := object
		for _, key := range strings.Split(path, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[key]
			case []any:
				v = nil
				if i, err := strconv.Atoi(key); err == nil && i < len(x) {
					v = x[i]
				}
			default:
				v = nil
			}
		}
		data, err := json.Marshal(v)
		if err != nil {
			panic(err) // of what was read as JSON
		}
		list = append(list, string(data))
	}
	return strings.Join(list, " ") + "\n"
}

var gaps = regexp.MustCompile(` {2,}`)

// unspaced makes one space of several, and none at the end of lines.
func unspaced(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(gaps.ReplaceAllString(line, " "), " \n") + "\n")
	}
	return b.String()
}

// table reads CSV into a map of columns for each row.
func table(t *testing.T, d *datadriven.TestData, out string) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) == 0 {
		d.Fatalf(t, "no CSV: %v", err)
	}
	var list []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		list = append(list, row)
	}
	return list
}

// means returns, from the table of volley cost, the means of C2 over its lower bound over all K that
// have both: a line for each algorithm and one for the least of them at each K, and a column for
// each p or, where there are several, for each number of rounds over the fewest.
func means(rows []map[string]string) string {
	seen := map[string]int{} // by K: each p and each number of rounds over the fewest has all K
	var names []string       // of these settings; a small K uses fewer ports
	var of []int
	overs := slices.ContainsFunc(rows, func(row map[string]string) bool { return row["rounds_over"] != rows[0]["rounds_over"] })
	for _, row := range rows {
		at := seen[row["K"]]
		seen[row["K"]]++
		if at == len(names) {
			names = append(names, "")
		}
		if names[at] = "ratio_p" + row["p"]; overs {
			names[at] = "ratio_over" + row["rounds_over"]
		}
		of = append(of, at)
	}
	if len(names) == 1 {
		names[0] = "ratio"
	}
	const least = "least of these"
	var algorithms []string
	sums, counts := map[[2]string]float64{}, map[[2]string]float64{}
	for i, row := range rows {
		s := names[of[i]]
		bound, _ := strconv.ParseFloat(row["bound_C2"], 64)
		fewest := math.Inf(1)
		for column, cell := range row {
			name, of := strings.CutSuffix(column, "_C2")
			packets, err := strconv.ParseFloat(cell, 64)
			if !of || name == "bound" || err != nil || bound == 0 {
				continue
			}
			if !slices.Contains(algorithms, name) {
				algorithms = append(algorithms, name)
			}
			sums[[2]string{name, s}] += packets / bound
			counts[[2]string{name, s}]++
			fewest = min(fewest, packets)
		}
		if !math.IsInf(fewest, 1) {
			sums[[2]string{least, s}] += fewest / bound
			counts[[2]string{least, s}]++
		}
	}
	slices.Sort(algorithms)
	slices.Reverse(algorithms)
	text := "algorithm," + strings.Join(names, ",") + "\n"
	for _, name := range append(algorithms, least) {
		text += name
		for _, s := range names {
			text += fmt.Sprintf(",%.3f", sums[[2]string{name, s}]/counts[[2]string{name, s}])
		}
		text += "\n"
	}
	return text
}

var (
	placeholder = regexp.MustCompile(`\{([a-z0-9]+)\.([A-Za-z0-9_-]+)(?:@([0-9]+))?\}`)
	optional    = regexp.MustCompile(`\[[^]]*\]`)
	ratio       = regexp.MustCompile(`^[0-9]+\.[0-9]{4,}$`)
)

// rows returns the rows of a table, all of which the document has.
func rows(t *testing.T, d *datadriven.TestData, doc string, wrong *problems) string {
	t.Helper()
	cells := map[string]string{} // by name, K, p and column
	var keys []string            // K, in order
	template, named := "", map[string]string{}
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "row "); ok {
			template = rest
			continue
		}
		if rest, ok := strings.CutPrefix(line, "as "); ok {
			k, name, _ := strings.Cut(rest, " = ")
			named[k] = name
			continue
		}
		name, command, ok := strings.Cut(line, " = ")
		command, ofMeans := strings.CutSuffix(command, " | means")
		args := strings.Fields(command)
		if !ok || len(args) == 0 || args[0] != "volley" {
			d.Fatalf(t, "%q: want NAME = volley …, or row …", line)
		}
		out, errs, code := run(args[1:]...)
		if code != 0 {
			d.Fatalf(t, "%s: exit %d, %s", command, code, errs)
		}
		if ofMeans {
			out = means(table(t, d, out))
		}
		for _, row := range table(t, d, out) {
			k, p := row["K"], row["p"]
			if k == "" {
				k = row["algorithm"]
			}
			if p == "" {
				p = "1"
			}
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
			for column, cell := range row {
				if ratio.MatchString(cell) {
					var x float64
					fmt.Sscan(cell, &x)
					cell = fmt.Sprintf("%.3f", x)
				}
				cells[strings.Join([]string{name, k, p, column}, " ")] = cell
			}
		}
	}
	var b strings.Builder
	for _, k := range keys {
		name := named[k]
		switch {
		case len(named) == 0:
			name = k
		case name == "":
			continue
		}
		fill := func(s string) (filled string, all bool) {
			all = true
			filled = placeholder.ReplaceAllStringFunc(s, func(m string) string {
				part := placeholder.FindStringSubmatch(m)
				p := part[3]
				if p == "" {
					p = "1"
				}
				cell := cells[strings.Join([]string{part[1], k, p, part[2]}, " ")]
				if cell == "" {
					all = false
				}
				return cell
			})
			return strings.ReplaceAll(filled, "{K}", name), all
		}
		row := optional.ReplaceAllStringFunc(template, func(m string) string {
			s, all := fill(m[1 : len(m)-1])
			if !all {
				return ""
			}
			return s
		})
		row, _ = fill(row)
		row = fold(row)
		if !strings.Contains(doc, row) {
			wrong.add(d, "the document has no row %q", row)
		}
		b.WriteString(row + "\n")
	}
	return b.String()
}
