//go:build linux

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpack has Python read Spack's recipe, and does what it says without Spack: with MPI, where that is.
func TestSpack(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	if text := read(t, "spack/package.py"); !strings.Contains(text, `"go@`+strings.TrimSpace(goVersion(t))+`:"`) {
		t.Errorf("the recipe does not want Go %s, as go.mod does", goVersion(t))
	}
	prefix := filepath.Join(t.TempDir(), "volley")
	variants, want := []string{"+python"}, []string{"bin/volley", "python/volley/__init__.py"}
	library := "no library"
	if exec.Command("pkg-config", "--exists", "mpi").Run() == nil {
		variants = append(variants, "+mpi", "+fortran")
		want = append(want, "lib/libvolley.so", "include/volley.h", "lib/pkgconfig/volley.pc", "lib/pkgconfig/mpi.pc")
		library = filepath.Join(prefix, "lib/libvolley.so")
		if exec.Command("gfortran", "--version").Run() == nil {
			want = append(want, "include/volley.mod", "lib/libvolleyf.a")
		}
	}
	c := exec.Command("python3", append([]string{"deploy/testdata/install.py", "deploy/spack/package.py", prefix}, variants...)...)
	c.Dir, c.Env = "..", append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), library+"\n") {
		t.Fatalf("%v: want %s at the end: %s", err, library, out)
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
			t.Errorf("%v: %v\n%s", variants, err, out)
		}
	}
}

// goVersion is what go.mod wants.
func goVersion(t *testing.T) string {
	_, after, _ := strings.Cut(read(t, "../go.mod"), "\ngo ")
	version, _, _ := strings.Cut(after, "\n")
	return version
}
