package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"volley/internal/cli/session"
	"volley/internal/exit"
)

// labCode is the variable with the exit code of this program where it stands for volley-lab.
const labCode = "VOLLEY_TEST_LAB"

// beLab is what this program does where it stands for volley-lab.
func beLab() {
	fmt.Println(strings.Join(os.Args[1:], " "))
	fmt.Fprintln(os.Stderr, "said")
	code, _ := strconv.Atoi(os.Getenv(labCode))
	os.Exit(code)
}

// TestExploreElsewhere starts volley-lab where it is on PATH, and says where to get it where it is not.
func TestExploreElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a link")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if r := volleyRun("explore"); r.code != exit.Usage || !strings.Contains(r.stderr, "go build ./lab/cmd/volley-lab") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	must(t, os.Symlink(thisProgram(t), filepath.Join(bin, session.LabName)))
	for _, code := range []int{0, 2, 7} {
		t.Setenv(labCode, strconv.Itoa(code))
		r := volleyRun("explore", "--addr", "127.0.0.1:0", "--open=false", "--new")
		if r.code != code || r.stdout != "explore --addr 127.0.0.1:0 --open=false --new\n" || r.stderr != "said\n" {
			t.Errorf("%+v: want exit code %d, and what the program says", r, code)
		}
	}
	wants(t, mustRun(t, "explore", "--help"), "volley-lab explore --help")
}
