package families

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite what commands print in testdata/claims")

// TestClaims checks the figures of README.md with the claims of the product, in a test of
// package internal/claims that exists here only and imports this package.
func TestClaims(t *testing.T) { claims(t, "TestLabClaims") }

// TestDocuments runs the commands of docs/research.md, with those of volley-lab.
func TestDocuments(t *testing.T) { claims(t, "TestShellBlocks/docs/research.md") }

// TestExecute runs plans over all fields by docs/execute.py.
func TestExecute(t *testing.T) { claims(t, "TestExecute") }

func claims(t *testing.T, name string) {
	t.Helper()
	test := must(filepath.Abs("testdata/claims.go.txt"))(t)
	added := filepath.Join(filepath.Dir(test), "..", "..", "..", "internal", "claims", "lab_test.go")
	overlay := must(json.Marshal(map[string]any{"Replace": map[string]string{added: test}}))(t)
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-count=1", "-timeout=1h", "-overlay", file, "-run", "^" + name + "$", "../../internal/claims"}
	if *rewrite {
		args = append(args, "-rewrite")
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
