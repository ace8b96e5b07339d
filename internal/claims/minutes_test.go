package claims

import (
	"errors"
	flags "flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"volley/internal/cli"
)

var withMPI = flags.Bool("mpi", false, "run the sections of docs/first-minutes.md that need mpirun, too: with -tags mpi")
var withTorch = flags.Bool("torch", false, "run the section of docs/first-minutes.md that needs PyTorch of /usr/bin/python3, too")

// asVolley is the variable of the environment with which the program of the tests is volley.
const asVolley = "CLAIMS_VOLLEY"

func TestMain(m *testing.M) {
	if os.Getenv(asVolley) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestFirstMinutes runs docs/first-minutes.md, each section in a shell and a directory of its own, and compares what
// the commands print with what the page says they print. In a block of the console a line that begins with $ is a
// command, and the lines below it are what it prints. There … stands for what differs from run to run, and a line ...
// for any lines, or none. A block of Go is the file main.go, one of
// Python the file train.py.
func TestFirstMinutes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the page is for a shell and the tools of Linux")
	}
	t.Parallel() // with what other processes run
	root := repository(t)
	bin := t.TempDir()
	program, err := os.Executable()
	if err := errors.Join(err, os.Symlink(program, filepath.Join(bin, "volley"))); err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(read(t, filepath.Join(root, "docs", "first-minutes.md")), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		t.Run(name, func(t *testing.T) {
			if strings.Contains(text, "\n$ mpirun ") && !*withMPI {
				t.Skip("run with -mpi")
			}
			if strings.Contains(text, "\nimport torch\n") && !*withTorch {
				t.Skip("run with -torch")
			}
			t.Parallel()
			dir := examplesOf(t, root)
			if err := os.Symlink(root, filepath.Join(dir, "volley")); err != nil {
				t.Fatal(err)
			}
			script, said := minutes(t, dir, text)
			if len(said) < 5 {
				t.Errorf("%d commands: were they found?", len(said))
			}
			shell := exec.Command("bash", "-c", script)
			shell.Dir = dir
			shell.Env = append(os.Environ(), "PATH="+bin+":/usr/bin:"+os.Getenv("PATH"), asVolley+"=1", "GOWORK=",
				"GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath", // the cache then knows the packages wherever they are
				"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			printed := strings.Split(busy.ReplaceAllString(string(out), ""), end+"\n")
			for i, want := range said {
				if i >= len(printed) || !want.prints.MatchString(printed[i]) {
					t.Fatalf("%s prints\n%s\nwant\n%s", want.command, strings.Join(printed[min(i, len(printed)):min(i+1, len(printed))], ""), want.text)
				}
			}
		})
	}
}

// busy is what the log says where other programs run: the page shows a quiet machine.
var busy = regexp.MustCompile(`(?m)^time=\S+ level=WARN msg="the model is far off .*\n`)

// end is the line that the script of a section prints behind what a command prints.
const end = "\x1e"

// said is what a page says a command prints.
type said struct {
	command, text string
	prints        *regexp.Regexp
}

// minutes returns the commands of a section as a script, and what they print. It writes its program into a directory.
func minutes(t *testing.T, dir, text string) (script string, list []said) {
	t.Helper()
	for i, block := range strings.Split(text, "```") {
		kind, block, _ := strings.Cut(block, "\n")
		switch {
		case i%2 == 1 && (kind == "go" || kind == "python"):
			name := map[string]string{"go": "main.go", "python": "train.py"}[kind]
			if err := os.WriteFile(filepath.Join(dir, name), []byte(block), 0o666); err != nil {
				t.Fatal(err)
			}
		case i%2 == 1 && kind == "console":
			for part := range strings.SplitSeq("\n"+strings.TrimSuffix(block, "\n"), "\n$ ") {
				if part == "" {
					continue
				}
				command, prints, _ := strings.Cut(part, "\n")
				script += command + "\necho " + end + "\n"
				pattern := regexp.QuoteMeta(prints)
				pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.(\n|\z)`).ReplaceAllString(pattern, `(?:.*\n)*`)
				pattern = strings.ReplaceAll(pattern, "…", `.*`)
				list = append(list, said{command, prints, regexp.MustCompile(`^` + pattern + `\n?$`)})
			}
		}
	}
	return script, list
}
