package launch

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWithin resolves paths: links, .. and what is missing do not lead out.
func TestWithin(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-euc", `cd "$1"; mkdir -p in/sub inner out/sub; ln -s ../out in/link; ln -s ../out/none in/dangling; ln -s sub in/same; ln -s . in/loop; touch in/file key`, "sh", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := &Confinement{Permitted: []string{base + "/in", base + "/key"}}
	for name, want := range map[string]string{
		"in": "in", "in/sub": "in/sub", "in/same": "in/sub", "in/none/deep": "in/none/deep", "in/loop/loop/sub": "in/sub", "key": "key", "out/../in": "in",
		"in/../out": "", "in/link": "", "in/link/sub": "", "in/dangling": "", "in/dangling/x": "", "inner": "", "out": "", "": "", "../..": "", "in/file/x": "", "key2": "", "in/link/../in": "in/in",
	} {
		got, err := c.permittedPath(base + "/" + name)
		if want != "" && (err != nil || got != base+"/"+want) || want == "" && err == nil {
			t.Errorf("%s: %s, %v: want %q", name, got, err, want)
		}
	}
	if _, err := (&Confinement{Permitted: []string{"/"}}).permittedPath("/none"); err != nil {
		t.Error(err)
	}
}
