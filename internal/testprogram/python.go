package testprogram

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// A call is what Python is to run where, and its standard input.
type call struct {
	Script    string
	Arguments []string
	Directory string
	Stdin     string
}

// A result is what a script has printed, and its exit status.
type result struct {
	Stdout, Stderr string
	Status         int
}

// loop has Python run each script in a process that it forks. Modules of the scripts are imported once, before.
const loop = `
import base64, contextlib, functools, glob, hashlib, hmac, io, json, os, re, sys, tempfile, zlib
for line in sys.stdin:
    call = json.loads(line)
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(call["Stdin"].encode())
    files[0].seek(0)
    child = os.fork()
    if child == 0:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        sys.stdin = open(0)
        sys.argv[1:] = call["Arguments"] or []
        os.chdir(call["Directory"])
        exec(compile(call["Script"], "script", "exec"), {"__name__": "__main__"})
        sys.exit()
    status = os.waitpid(child, 0)[1]
    for file in files:
        file.seek(0)
    print(json.dumps({"Stdout": files[1].read().decode(), "Stderr": files[2].read().decode(), "Status": status}), flush=True)
`

var interpreter struct {
	sync.Mutex
	calls   *json.Encoder
	results *json.Decoder
}

// NeedPython skips the test where there is no Python, but not in CI. It returns the text of the script, which the test
// reads itself: the go command then knows when a result that it has kept is out of date.
func NeedPython(t *testing.T, path string) string {
	t.Helper()
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: CI has to have it", err)
		}
		t.Skipf("%s needs Python 3: %v", path, err)
	}
	return string(script)
}

// Python runs a script of Python, and returns what it prints, and whether it has failed. All scripts of a test program share
// one interpreter, as it can take longer to start than they do to run.
func Python(t *testing.T, script, stdin string, arguments ...string) (stdout, stderr string, failed bool) {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	interpreter.Lock()
	defer interpreter.Unlock()
	if interpreter.calls == nil {
		cmd := exec.Command("python3", "-c", loop)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		interpreter.calls, interpreter.results = json.NewEncoder(stdin), json.NewDecoder(stdout)
	}
	var r result
	if err := interpreter.calls.Encode(call{script, arguments, directory, stdin}); err != nil {
		t.Fatal(err)
	}
	if err := interpreter.results.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.Stderr, "Traceback") {
		t.Fatalf("Python %.200q: %s", arguments, r.Stderr)
	}
	return r.Stdout, r.Stderr, r.Status != 0
}
