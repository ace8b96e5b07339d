//go:build linux

package deploy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	exitOK    = 0
	exitWhole = 3 // not every node is whole
)

// binary builds volley where every user can run it, and returns its folder.
func binary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	open(t, dir, 0o755)
	c := exec.Command("go", "build", "-o", dir, "./cmd/volley")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// open lets every user into a folder that the test has made, and through the one above it.
func open(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, mode))
}

func secret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), mode))
}

// nodes returns n folders that anybody may use, each with a file.
func nodes(t *testing.T, n int) []string {
	t.Helper()
	root := t.TempDir()
	open(t, root, 0o755)
	var dirs []string
	for i := range n {
		dir := filepath.Join(root, fmt.Sprint(i))
		must(t, os.Mkdir(dir, 0o777))
		open(t, dir, 0o777)
		write(t, filepath.Join(dir, "packet"), strings.Repeat(fmt.Sprintln("node", i), 10_000), 0o644)
		dirs = append(dirs, dir)
	}
	return dirs
}

// together runs commands at once and returns their exit codes, sorted, each once, and what they print.
func together(t *testing.T, commands []*exec.Cmd) (codes []int, text string) {
	t.Helper()
	var all sync.WaitGroup
	out := make([]bytes.Buffer, len(commands))
	for i, c := range commands {
		c.Stdout, c.Stderr = &out[i], &out[i]
		if err := c.Start(); err != nil {
			t.Error(err)
			continue
		}
		all.Go(func() { c.Wait() })
	}
	all.Wait()
	for i, c := range commands {
		codes, text = append(codes, c.ProcessState.ExitCode()), text+out[i].String()
	}
	slices.Sort(codes)
	return slices.Compact(codes), text
}

// limited ends with the test, or after a minute.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var flag = regexp.MustCompile(`--([a-z][a-z-]*)`)

// checkFlags checks that volley, in that folder, has the verb and all flags of a command line.
func checkFlags(t *testing.T, bin, where string, args []string) {
	t.Helper()
	help := func(args ...string) string {
		out, err := exec.Command(filepath.Join(bin, "volley"), args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: volley %s: %v: %s", where, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	known := map[string]bool{}
	for _, f := range flag.FindAllStringSubmatch(help(args[0], "--help")+help("help", "ranks"), -1) {
		known[f[1]] = true
	}
	for _, arg := range args[1:] {
		if f := flag.FindStringSubmatch(arg); f != nil && !known[f[1]] {
			t.Errorf("%s: volley %s has no --%s", where, args[0], f[1])
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
