package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"volley/internal/exit"
)

// TestMeta keeps what Volley writes elsewhere: the nodes get nothing, and what is lost comes back.
func TestMeta(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 100)
	before := contents(t, dirs)
	meta := filepath.Join(t.TempDir(), "meta")
	with := " --meta " + meta
	expect(t, exit.Absent, "recover"+with, dirs, "no node has a valid manifest in "+meta)
	if list, err := os.ReadDir(meta); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that was refused leaves %v, %v", list, err)
	}
	expect(t, exit.OK, "protect --tolerate 1"+with, dirs)
	bare(t, dirs...)
	parity := filepath.Join(meta, "node.2", "generation.1", "parity")
	removeAll(t, parity)
	expect(t, exit.Wrong, "verify"+with, dirs, fmt.Sprintf("missing: %q", parity))
	expect(t, exit.OK, "recover"+with, dirs)
	removeAll(t, dirs[1])
	expect(t, exit.OK, "recover"+with, dirs)
	expect(t, exit.OK, "verify"+with, dirs)
	have(t, dirs, before)
	expect(t, exit.Usage, "resize"+with+" --remove "+dirs[1], dirs)
	expect(t, exit.Usage, "protect --tolerate 1 --group-size 3"+with, dirs)
	expect(t, exit.Usage, "protect --tolerate 1 --meta "+dirs[0], dirs)
}
