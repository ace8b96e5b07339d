package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// readOutcomes reads a file of outcomes, one JSON object a line.
func readOutcomes(path string) ([]*Outcome, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*Outcome
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		o := new(Outcome)
		switch err := d.Decode(o); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // a run that was ended
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, o)
	}
}

func writeOutcomes(path string, all []*Outcome) error {
	var text strings.Builder
	for _, o := range all {
		data, err := json.Marshal(o)
		if err != nil {
			return err
		}
		text.Write(append(data, '\n'))
	}
	return os.WriteFile(path, []byte(text.String()), 0o666)
}

// readExplained reads the reasons why survivors are none to worry about, by key. Lines
// are "file | function | original → mutated #n | reason".
func readExplained(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		last := strings.LastIndex(line, " | ") // the code may have such a bar
		if last < 0 || strings.Count(line[:last], " | ") < 2 || !strings.Contains(line[:last], " → ") {
			return nil, fmt.Errorf("%s:%d: want file | function | original → mutated #n | reason", path, i+1)
		}
		reasons[strings.TrimSpace(line[:last])] = strings.TrimSpace(line[last+3:])
	}
	return reasons, nil
}

// A row counts the mutants of a package.
type row struct{ mutants, killed, timeout, survived, notReached, explained int }

func (r *row) add(o *Outcome, explained bool) {
	r.mutants++
	switch o.Outcome {
	case killed:
		r.killed++
	case timedOut:
		r.timeout++
	case survived:
		r.survived++
	case notReached:
		r.notReached++
	}
	if explained && o.alive() {
		r.explained++
	}
}

// share returns how many of those without an explanation are killed, as text.
func (r *row) share() string {
	if r.mutants == r.explained {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(r.killed+r.timeout)/float64(r.mutants-r.explained))
}

// table writes the counts per package.
func table(w io.Writer, all []*Outcome, reasons map[string]string) {
	rows, total := map[string]*row{}, new(row)
	var names []string
	for _, o := range all {
		r := rows[o.Package]
		if r == nil {
			r = new(row)
			rows[o.Package] = r
			names = append(names, o.Package)
		}
		_, explained := reasons[o.Key()]
		r.add(o, explained)
		total.add(o, explained)
	}
	slices.Sort(names)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "package\tmutants\tkilled\ttimed out\tsurvived\tnot reached\texplained\tkilled of unexplained\t")
	line := func(name string, r *row) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", name, r.mutants, r.killed, r.timeout, r.survived, r.notReached, r.explained, r.share())
	}
	for _, name := range names {
		line(name, rows[name])
	}
	line("all", total)
	tw.Flush()
}

// survivors writes the mutants that no test noticed and nobody explained.
func survivors(w io.Writer, root string, all []*Outcome, reasons map[string]string) {
	for _, o := range all {
		if _, explained := reasons[o.Key()]; explained || !o.alive() {
			continue
		}
		note := ""
		switch {
		case o.Outcome == notReached:
			note = "   not reached"
		case o.Skipped > 0:
			note = fmt.Sprintf("   %d tests left out for the budget", o.Skipped)
		}
		fmt.Fprintf(w, "%s:%d:%d: %s: %s: %s%s\n", o.File, o.Line, o.Column, o.Function, o.Operator, o.Change(), note)
		if lines, err := sourceLines(filepath.Join(root, o.File)); err == nil && o.Line <= len(lines) {
			fmt.Fprintf(w, "\t%s\n", strings.TrimSpace(lines[o.Line-1]))
		}
	}
}

// stale writes the explanations of mutants that are killed, or of none. Points are all of
// the packages that were loaded; of other packages it notices only files that are gone.
func stale(w io.Writer, root string, points []*Point, all []*Outcome, reasons map[string]string) {
	exists, loaded := map[string]bool{}, map[string]bool{}
	for _, p := range points {
		exists[p.Key()], loaded[p.File] = true, true
	}
	for _, o := range all {
		if _, ok := reasons[o.Key()]; ok && !o.alive() {
			fmt.Fprintf(w, "explained, but %s by %s: %s\n", o.Outcome, o.Test, o.Key())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		file, _, _ := strings.Cut(key, " | ")
		_, err := os.Stat(filepath.Join(root, file))
		if gone := errors.Is(err, fs.ErrNotExist); gone || loaded[file] && !exists[key] {
			fmt.Fprintf(w, "explained, but there is no such mutant: %s\n", key)
		}
	}
}

// report writes all results to the folder, and the table to standard output too.
func report(c *config, points []*Point, all []*Outcome, root string) error {
	reasons, err := readExplained(c.explained)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *Outcome) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Operator, b.Operator))
	})
	if err := writeOutcomes(c.results(), all); err != nil {
		return err
	}
	var text, list strings.Builder
	table(&text, all, reasons)
	stale(&text, root, points, all, reasons)
	for _, name := range c.broken {
		fmt.Fprintf(&text, "left out, for it fails with no mutant: %s\n", name)
	}
	survivors(&list, root, all, reasons)
	fmt.Fprint(c.out, text.String())
	if err := os.WriteFile(filepath.Join(c.dir, "table.txt"), []byte(text.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "survivors.txt"), []byte(list.String()), 0o666)
}
