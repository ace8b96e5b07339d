package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"volley/internal/exit"
)

// evil is a name that would write lines, colours and directions of its own.
const evil = "x\nvolley: all is whole\r\x1b[31m\a\u202egpj\xff"

// checkPrinted fails where output has what only evil has.
func checkPrinted(t *testing.T, args []string, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "volley: all is whole") {
			t.Errorf("%q: a line of a name: %q", args, line)
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' && r != '\u00a0' }) {
			t.Errorf("%q: a control character: %q", args, line)
		}
	}
}

// TestEvilNames runs all verbs on files and directories with such names, where they succeed and where they fail.
func TestEvilNames(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), evil)
	in := filepath.Join(root, "in"+evil)
	if err := os.MkdirAll(in, 0o777); err != nil {
		t.Skip(err) // not every file system has such names
	}
	file := func(path, text string) string {
		write(t, path, text)
		return path
	}
	for k := range 3 {
		file(filepath.Join(in, fmt.Sprint(k, evil)), strings.Repeat("data", 100+k))
	}
	table := file(filepath.Join(root, "matrix"+evil), "1,2,3\n4,5,6\n7,8,10\n")
	wrong := file(filepath.Join(root, "wrong"+evil), "1,"+evil+"\n")
	var nodes []string
	for n := range 4 {
		dir := filepath.Join(root, fmt.Sprint("node", n, evil))
		must(t, os.Mkdir(dir, 0o777))
		file(filepath.Join(dir, "file"+evil), strings.Repeat("node", 1000+n))
		nodes = append(nodes, dir)
	}
	out, back, none := filepath.Join(root, "out"+evil), filepath.Join(root, "back"+evil), filepath.Join(root, "none"+evil)
	do := func(want int, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, &stdout, &stderr)
		if code != want {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, want, &stdout, &stderr)
		}
		checkPrinted(t, args, stdout.String())
		checkPrinted(t, args, stderr.String())
		if want != exit.OK && stderr.Len() == 0 {
			t.Errorf("%q: no error", args)
		}
	}
	group := func(verb string, more ...string) []string { return append(append([]string{verb}, more...), nodes...) }
	do(0, "encode", "-v", "-o", out, in)
	do(2, "encode", "-o", out, in)
	do(2, "encode", "-o", none, none)
	do(0, "encode", "-v", "-o", none, "--matrix", "file:"+table, in)
	do(0, "decode", "-v", "-o", back, out)
	do(2, "decode", "-o", back, out)
	do(0, "decode", "-o", back, "--force", out, filepath.Join(in, "0"+evil), wrong)
	file(filepath.Join(out, "coded.1"), "damaged")
	file(filepath.Join(out, "manifest.json"), `{"format":"`+"\x1b"+`"`)
	do(0, "decode", "-v", "-o", back, "--force", out, filepath.Join(in, "0"+evil))
	do(2, "decode", "-o", back, "--force", in)
	do(3, group("verify")...)
	do(exit.Absent, group("recover")...)
	do(2, group("protect", "--tolerate", "9")...)
	do(0, group("protect", "-v", "--tolerate", "1")...)
	do(0, group("verify", "-v")...)
	file(filepath.Join(nodes[1], "new"+evil), "new")
	file(filepath.Join(nodes[1], "file"+evil), "changed")
	do(3, group("verify")...)
	do(2, group("protect", "--tolerate", "1")...)
	do(0, group("recover", "-v")...)
	do(0, group("recover", "--revert", "changed")...)
	removeAll(t, filepath.Join(nodes[0], "file"+evil))
	do(0, group("recover", "--dry-run")...)
	do(0, group("recover")...)
	removeAll(t, nodes[:2]...)
	do(2, group("recover")...)
	do(2, group("protect", "--tolerate", "1", "--believe", evil)...)
	do(2, "protect", "--tolerate", "1", nodes[2], table)
	do(2, "protect", "--tolerate", "1", nodes[2], nodes[2])
	for _, args := range [][]string{{evil}, {"help", evil}, {"plan", "--" + evil}, {"cost", "-k", "3", "--algorithm", evil}, {"algorithms", evil}, {"verify", none}} {
		do(2, args...)
	}
	for _, flag := range []string{"-k", "--matrix", "--field", "--format", "--points"} {
		do(2, "plan", "-k", "3", flag, evil)
	}
	do(2, "matrix", "-k", "3", "--matrix", "file:"+wrong)
	do(0, "plan", "-k", "3", "--matrix", "file:"+table, "--why")
	do(0, "matrix", "-k", "3", "--matrix", "file:"+table)
}

// raw matches calls that print as they are what may be names of others.
var raw = regexp.MustCompile(`\b(fmt\.F?[Pp]rint\w*|io\.WriteString)\(.*`)

// TestPrinted keeps the command line from writing but by package printable. The texts of help are the program's.
func TestPrinted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	own, _ := filepath.Glob("*.go")
	if files = append(files, own...); err != nil || len(files) < 40 {
		t.Fatal(files, err)
	}
	var calls []string
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			for _, call := range raw.FindAllString(string(readFile(t, name)), -1) {
				calls = append(calls, name+": "+call)
			}
		}
	}
	if len(calls) != 1 || !strings.HasPrefix(calls[0], "schedules/registries.go: fmt.Fprint(") {
		t.Errorf("names of others come out raw: want printable.Fprintf: %q", calls)
	}
}
