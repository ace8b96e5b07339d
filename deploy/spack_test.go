//go:build linux

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpack has Python read Spack's recipe, and does what it says without Spack: with MPI, where that is, and without.
func TestSpack(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	recipe, err := filepath.Abs("spack/package.py")
	if err != nil {
		t.Fatal(err)
	}
	driver, err := filepath.Abs("testdata/spack/install.py")
	if err != nil {
		t.Fatal(err)
	}
	python := func(args ...string) string {
		t.Helper()
		c := exec.Command("python3", args...)
		c.Dir, c.Env = "..", append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	version := strings.TrimSpace(goVersion(t))
	if text := read(t, recipe); !strings.Contains(text, `"go@`+version+`:"`) {
		t.Errorf("the recipe does not want Go %s, as go.mod does", version)
	}
	for _, variants := range [][]string{{"+python"}, {"+mpi", "+fortran", "+python"}} {
		want := []string{"bin/volley", "bin/volley-lab", "python/volley/__init__.py"}
		if variants[0] == "+mpi" {
			if exec.Command("pkg-config", "--exists", "mpi").Run() != nil {
				t.Log("without MPI: pkg-config finds no mpi")
				continue
			}
			want = append(want, "lib/libvolley.so", "include/volley.h", "lib/pkgconfig/volley.pc", "lib/pkgconfig/mpi.pc")
			if exec.Command("gfortran", "--version").Run() == nil {
				want = append(want, "include/volley.mod", "lib/libvolleyf.a")
			}
		}
		prefix := filepath.Join(t.TempDir(), "volley")
		out := python(append([]string{driver, recipe, prefix}, variants...)...)
		for _, name := range want {
			if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
				t.Errorf("%v: %v\n%s", variants, err, out)
			}
		}
		if library := filepath.Join(prefix, "lib/libvolley.so"); variants[0] == "+mpi" && !strings.Contains(out, "\n"+library+"\n") {
			t.Errorf("it does not say where the library is: %s", out)
		}
	}
}

// goVersion is what go.mod wants.
func goVersion(t *testing.T) string {
	_, after, _ := strings.Cut(read(t, "../go.mod"), "\ngo ")
	version, _, _ := strings.Cut(after, "\n")
	return version
}
