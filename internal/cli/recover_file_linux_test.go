package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestRecoverFile brings single files back, here and over ssh.
func TestRecoverFile(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 100_000)
	expect(t, exit.OK, "protect --tolerate 2", dirs)
	ckpt := filepath.Join(dirs[1], "ckpt")
	whole := string(readFile(t, ckpt))
	for _, run := range []func(args ...string) result{volleyRun, func(args ...string) result { return f.run(f.of(args...)...) }} {
		with := func(code int, flags, after string, texts ...string) {
			t.Helper()
			run(slices.Concat([]string{"recover"}, strings.Fields(flags), dirs)...).is(t, code, texts...)
			if text, _ := os.ReadFile(ckpt); string(text) != after {
				t.Errorf("%s: %d bytes are there: want %d", flags, len(text), len(after))
			}
		}
		other := filepath.Join(dirs[1], "sub", "b")
		removeAll(t, ckpt, other)
		with(exit.Usage, "--file=/ckpt --file=/none", "", `"/none" fits nothing`)
		with(exit.Usage, "--file=", "")
		with(exit.OK, "--file=/ckpt --file=!x", whole, "1 file  ", "matched    4 files and directories; nothing else was compared")
		if _, err := os.Stat(other); err == nil {
			t.Error("another file came back")
		}
		rewrite(t, ckpt, []byte("changed"))
		with(exit.OK, "--file=ckpt --revert changed --dry-run", "changed", "would be reverted: ")
		out := filepath.Join(t.TempDir(), "out")
		with(exit.OK, "--file=ckpt --to="+out, "changed")
		for n := range dirs {
			if text := readFile(t, out, fmt.Sprint("node.", n), "ckpt"); n == 1 && string(text) != whole {
				t.Errorf("of node %d: %d bytes", n, len(text))
			}
		}
		with(exit.OK, "--file=ckpt --revert changed", whole)
		with(exit.OK, "--revert deleted", whole)
	}
	f.ended(t)
}
