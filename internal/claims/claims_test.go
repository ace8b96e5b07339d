package claims

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
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

	"volley/algo"
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
//	cells COLUMN …     of each row of CSV those columns; A/B are two of them, with a slash
//	keys KEY.KEY …     of JSON the values of those keys
//	means              of the table of volley cost the means of C2 over its bound
//
// Besides volley there are the commands of [execute]. Each file of testdata has a directory of
// its own, with examples/packets. Rewrite with -rewrite only what is meant to change, and then
// the document.
func TestClaims(t *testing.T) { runClaims(t, "testdata") }

// problems are what is wrong with the claims of a file, told at its end: datadriven goes no
// further after a failure.
type problems struct{ list []string }

func (p *problems) add(d *datadriven.TestData, format string, args ...any) {
	p.list = append(p.list, d.Pos+": "+fmt.Sprintf(format, args...))
}

func runClaims(t *testing.T, dir string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		root := repository(t)
		inCopy(t, root)
		var wrong problems
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "claim" {
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			return claim(t, d, document(t, root, d), &wrong)
		})
		for _, s := range wrong.list {
			t.Error(s)
		}
	})
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
	switch what {
	case "":
		return unspaced(out)
	case "lines":
		pattern := regexp.MustCompile("(?m)" + rest)
		return unspaced(strings.Join(slices.DeleteFunc(strings.SplitAfter(out, "\n"), func(line string) bool {
			return !pattern.MatchString(line)
		}), ""))
	case "means":
		return means(table(t, d, out))
	case "cells":
		return cells(t, d, table(t, d, out), strings.Fields(rest))
	case "keys":
		var object any
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			d.Fatalf(t, "%s: %v", command, err)
		}
		return valuesAt(object, strings.Fields(rest))
	}
	d.Fatalf(t, "unknown filter %q", filter)
	return ""
}

// cells returns columns of a table.
func cells(t *testing.T, d *datadriven.TestData, rows []map[string]string, columns []string) string {
	t.Helper()
	var b strings.Builder
	for _, row := range rows {
		list := make([]string, len(columns))
		for i, column := range columns {
			pair := strings.Split(column, "/")
			for j, name := range pair {
				cell, ok := row[name]
				if !ok {
					d.Fatalf(t, "no column %s", name)
				}
				pair[j] = cell
			}
			list[i] = strings.Join(pair, "/")
		}
		fmt.Fprintln(&b, strings.Join(list, " "))
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

// means returns, from the table of volley cost, the mean of C2 over the universal bound of each algorithm, over all K that have both, and of
// the least of them at each K: a line each, with a number for each number of rounds above the fewest.
func means(rows []map[string]string) string {
	var overs []string
	ratios := map[string]map[string][]float64{} // by algorithm and rounds above the fewest
	add := func(name, over string, ratio float64) {
		if ratios[name] == nil {
			ratios[name] = map[string][]float64{}
		}
		ratios[name][over] = append(ratios[name][over], ratio)
	}
	for _, row := range rows {
		over := row["rounds_over"]
		if !slices.Contains(overs, over) {
			overs = append(overs, over)
		}
		k, err := strconv.Atoi(row["K"])
		ports, err2 := strconv.Atoi(row["p"])
		if err := cmp.Or(err, err2); err != nil {
			return err.Error()
		}
		bound := float64(algo.BoundC2(k, ports))
		least := math.Inf(1)
		for column, cell := range row {
			name, counted := strings.CutSuffix(column, "_C2")
			packets, err := strconv.ParseFloat(cell, 64)
			if counted && name != "bound" && err == nil {
				add(name, over, packets/bound)
				least = min(least, packets/bound)
			}
		}
		if !math.IsInf(least, 1) {
			add("least of these", over, least)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		b.WriteString(name)
		for _, over := range overs {
			sum := 0.0
			for _, x := range ratios[name][over] {
				sum += x
			}
			fmt.Fprintf(&b, " %.3f", sum/float64(len(ratios[name][over])))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
