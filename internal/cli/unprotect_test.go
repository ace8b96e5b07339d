package cli

import (
	"path/filepath"
	"testing"

	"volley/internal/exit"
)

// TestUnprotect ends a protection: asked first, refused where something is lost, and with nothing left but the files.
func TestUnprotect(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 9000)
	before := contents(t, dirs)
	expect(t, exit.OK, "unprotect", dirs, "not protected: there is nothing to remove")
	expect(t, exit.OK, "protect --tolerate 2", dirs)
	expect(t, exit.Usage, "unprotect", dirs, "in force: generation 1, any 2 may be lost", "nothing is removed: --yes")
	expect(t, exit.OK, "verify", dirs)
	vanish(t, filepath.Join(dirs[1], "ckpt"))
	expect(t, exit.Usage, "unprotect --yes", dirs, dirs[1]+" is missing: ", "recover it first", "--force gives it up")
	expect(t, exit.OK, "recover", dirs)
	expect(t, exit.OK, "unprotect --yes", dirs, "the protection is removed")
	expect(t, exit.OK, "unprotect --yes --json", dirs, `"protected": false`)
	bare(t, dirs...)
	have(t, dirs, before)
}
