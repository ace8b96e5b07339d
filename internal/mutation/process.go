package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A result is how tests ended.
type result struct {
	failed, timeout bool
	test            string // that failed or ran last
	took            time.Duration
	output          string // the end of it
}

// A runner runs tests.
type runner struct {
	memory int64
	temp   string // a folder for what tests write
}

// run runs tests of a binary in one process. It ends the process as soon as one has failed.
func (r *runner) run(t *testBinary, path string, tests []string, timeout time.Duration, env ...string) (result, error) {
	// With = as go test has it: command lines that tests parse skip such flags only.
	args := []string{"-test.v", "-test.failfast", "-test.run=^(" + strings.Join(tests, "|") + ")$"}
	if t.rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	if err := os.MkdirAll(r.temp, 0o777); err != nil {
		return result{}, err
	}
	defer os.RemoveAll(r.temp)
	cmd, kill := bounded(r.memory, path, args...)
	w := &watcher{dir: t.dir, end: make(chan struct{})}
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, w, w
	cmd.Env = append(os.Environ(), append(env, "VOLLEY_TUNE=off", "TMPDIR="+r.temp)...)
	cmd.WaitDelay = time.Second // for what a process leaves behind
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var res result
	var err error
	select {
	case err = <-done:
	case <-w.end:
		kill()
		<-done
	case <-timer.C:
		res.timeout = true
		kill()
		<-done
	}
	kill() // what is left of the group
	res.took = time.Since(start)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 126 || exit.ExitCode() == 127) {
		return res, fmt.Errorf("%s: cannot be run: %s", path, w.tail) // as the shell says
	}
	if err != nil && exit == nil && !errors.Is(err, exec.ErrWaitDelay) {
		return res, fmt.Errorf("%s: %w", path, err)
	}
	res.failed = !res.timeout && (exit != nil || w.failed)
	res.test, res.output = w.test, string(w.tail)
	return res, nil
}

// A watcher reads what tests print.
type watcher struct {
	dir    string
	end    chan struct{} // closed when a test has failed
	mutex  sync.Mutex
	line   []byte
	tail   []byte
	test   string
	failed bool
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.tail = append(w.tail, p...)
	if len(w.tail) > 1<<16 {
		w.tail = append([]byte(nil), w.tail[len(w.tail)-1<<12:]...)
	}
	w.line = append(w.line, p...)
	for {
		line, rest, found := bytes.Cut(w.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.line = rest
		w.see(string(line))
	}
}

var (
	ran    = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(\S+)`)
	fails  = regexp.MustCompile(`^ *--- FAIL: (\S+)|^(?:panic|fatal error): `)
	logged = regexp.MustCompile(`^ +(\w+_test\.go):(\d+): `)
	errs   = regexp.MustCompile(`\.(Errorf?|Fatalf?)\(`)
	logs   = regexp.MustCompile(`\.(Logf?|Skipf?)\(`)
)

// see looks at one line of output.
func (w *watcher) see(line string) {
	if w.failed {
		return
	}
	if m := ran.FindStringSubmatch(line); m != nil {
		w.test, _, _ = strings.Cut(m[1], "/")
	}
	if m := fails.FindStringSubmatch(line); m != nil {
		if m[1] != "" {
			w.test, _, _ = strings.Cut(m[1], "/")
		}
		w.failed = true
	} else if m := logged.FindStringSubmatch(line); m != nil && isError(filepath.Join(w.dir, m[1]), m[2]) {
		w.failed = true // and the test may go on for long
	}
	if w.failed {
		close(w.end)
	}
}

// isError reports whether that line of a test's source is a call of t.Error or the like.
func isError(path, line string) bool {
	lines, _ := sourceLines(path)
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > len(lines) {
		return false
	}
	return errs.MatchString(lines[n-1]) && !logs.MatchString(lines[n-1])
}

var sources sync.Map // lines by path

func sourceLines(path string) ([]string, error) {
	if lines, ok := sources.Load(path); ok {
		return lines.([]string), nil
	}
	data, err := os.ReadFile(path)
	lines := strings.Split(string(data), "\n")
	sources.Store(path, lines)
	return lines, err
}
