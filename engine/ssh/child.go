package ssh

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Client starts programs.
type Client struct {
	Command []string // ssh, with arguments of the user's
	Program string   // the program's name or path there, as a shell finds it; ~/ is the user's home
	Here    []string // the program on this machine, for addresses without a host
	Verb    string   // its only argument

	// Copy has Here[0] copied to a temporary file there for the time of the run, in place of Program.
	Copy bool

	// Limit is how long a host, or the program there, may be silent before it counts as dead; 0: a minute.
	Limit time.Duration

	Env []string // of the programs here and of ssh; nil: that of this process

	Stderr func(host, line string) // is called with what is said there; calls do not overlap
}

// A Child is a program on another host, or here. One goroutine receives.
type Child struct {
	Address
	sender
	cmd     *exec.Cmd
	in      io.Closer
	out     *io.PipeReader
	lines   *bufio.Scanner
	said    string // the last line of stderr
	stderr  func(host, line string)
	greeted atomic.Bool
	silence time.Duration // that ends it
	mute    atomic.Bool   // it was killed as it said nothing
	ended   chan struct{}
	status  error // once ended
}

// greeting comes before all messages: what a shell says at login comes before that.
const greeting = "volley: messages follow"

// Bounds of a line, and of the time between two messages: a beat is an empty one.
const (
	mostLine = 1 << 20
	Beat     = 2 * time.Second
)

// silence is how long a side that says nothing, not even a beat, counts as there.
const silence = time.Minute

// options are for every ssh: no terminal, no ports, and a dead host is noticed, one interval later than it counts.
func (c *Client) options() []string {
	seconds := int(min(cmp.Or(c.Limit, silence), silence/2) / time.Second)
	interval := max(1, seconds/6)
	option := func(name string, n int) string { return fmt.Sprintf("-o%s=%d", name, max(1, n)) }
	return []string{"-T", "-oClearAllForwardings=yes", option("ServerAliveInterval", interval), option("ServerAliveCountMax", seconds/interval-2), option("ConnectTimeout", seconds)}
}

// Start starts a program and returns at once: Receive says what is wrong with it.
func (c *Client) Start(a Address) (*Child, error) {
	line := append(slices.Clone(c.Here), c.Verb)
	var program []byte
	if a.Host != "" {
		remote := quoteProgram(c.Program) + " " + c.Verb
		if c.Copy {
			var err error
			if program, err = os.ReadFile(c.Here[0]); err != nil {
				return nil, err
			}
			remote = copying(program, c.Verb)
		}
		line = slices.Concat(c.Command, c.options())
		if a.Port != "" {
			line = append(line, "-p", a.Port)
		}
		line = append(line, "--", a.Host, remote)
	}
	r, w := io.Pipe()
	x := &Child{Address: a, cmd: exec.Command(line[0], line[1:]...), out: r, lines: bufio.NewScanner(r), stderr: c.Stderr, ended: make(chan struct{}),
		silence: min(silence, max(cmp.Or(c.Limit, silence), 3*Beat))}
	x.lines.Buffer(nil, mostLine)
	in, err := x.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	x.in, x.to = in, in
	stderr := &LineWriter{Line: func(text string) { x.said = text; c.Stderr(a.At(), text) }}
	x.cmd.Stdout, x.cmd.Stderr, x.cmd.Env = w, stderr, c.Env
	x.cmd.WaitDelay = time.Second // the master of a shared connection keeps stderr open
	if err := x.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		x.status = x.cmd.Wait()
		stderr.Flush()
		w.Close()
		close(x.ended)
	}()
	x.mu.Lock()
	go func() {
		x.to.Write(program)
		x.mu.Unlock()
		beat(x.ended, x.write)
	}()
	return x, nil
}

// beat tells the other side that this one is there, until the end.
func beat(end <-chan struct{}, write func([]byte) error) {
	for {
		select {
		case <-end:
			return
		case <-time.After(Beat):
			write([]byte("\n"))
		}
	}
}

// Send sends a message. Its error says how the program ended.
func (x *Child) Send(v any) error {
	if x.sender.Send(v) != nil {
		return x.failed()
	}
	return nil
}

// Receive receives a message. Its error says how the program ended; one that says nothing for too long is killed.
func (x *Child) Receive(v any) error {
	late := time.AfterFunc(x.silence, func() {
		if x.greeted.Load() { // else a user may be typing a password
			x.mute.Store(true)
			x.cmd.Process.Kill()
		}
	})
	defer late.Stop()
	for x.lines.Scan() {
		late.Reset(x.silence)
		said, greets := bytes.CutSuffix(x.lines.Bytes(), []byte(greeting)) // a login may say a line without an end
		switch text := x.lines.Bytes(); {
		case x.greeted.Load() && len(text) == 0: // a beat
		case x.greeted.Load():
			if err := json.Unmarshal(text, v); err != nil {
				return fmt.Errorf("%s says what volley does not say: %w", x.At(), err)
			}
			return nil
		default: // what a shell says at login
			if x.greeted.Store(greets); !greets || len(said) > 0 {
				x.stderr(x.At(), string(said))
			}
		}
	}
	if err := x.lines.Err(); err != nil && err != io.ErrClosedPipe { // which End closes
		return fmt.Errorf("%s says what volley does not say: %w", x.At(), err)
	}
	return x.failed()
}

// failed ends a program that does not talk any more, and returns the error that says how it ended.
func (x *Child) failed() error {
	x.End(Beat)
	said := ""
	if x.said != "" {
		said = ": " + x.said
	}
	exit := new(exec.ExitError)
	switch errors.As(x.status, &exit); {
	case x.mute.Load():
		return fmt.Errorf("volley at %s has said nothing for %v%s", x.At(), x.silence, said)
	case exit.ProcessState == nil:
		return fmt.Errorf("the connection to %s has ended%s", x.At(), said)
	case exit.ExitCode() == 126, exit.ExitCode() == 127:
		return &MissingError{fmt.Errorf("cannot start volley at %s%s", x.At(), said)}
	case exit.ExitCode() == 255 && x.greeted.Load():
		return fmt.Errorf("volley at %s was killed, or the connection to it has ended%s", x.At(), said)
	case exit.ExitCode() == 255:
		return fmt.Errorf("no connection to %s%s", x.At(), said)
	}
	return fmt.Errorf("volley at %s ended: %v%s", x.At(), x.status, said)
}

// A MissingError says that a program cannot be started on a host.
type MissingError struct{ error }

// End stops the program, and waits until it has ended.
func (x *Child) End(patience time.Duration) {
	x.Stop(patience)
	x.out.Close() // what comes yet is not read
	<-x.ended
}

// Stop closes the standard input of the program, which ends it, and does not wait. After a time it ends the connection.
func (x *Child) Stop(patience time.Duration) {
	x.in.Close()
	time.AfterFunc(patience, func() { x.cmd.Process.Kill() })
}

// quote returns text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// quoteProgram quotes the path of a program, but for a ~/ which begins it.
func quoteProgram(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return "~/" + quote(rest)
	}
	return quote(cmp.Or(path, "volley"))
}

// copying returns the command that takes a program from standard input, compares its digest, runs it and removes it.
func copying(program []byte, verb string) string {
	script := `umask 077; d=$(mktemp -d) || exit 1
dd iflag=fullblock bs=%d count=1 of="$d/volley" 2>/dev/null
if echo "%x  $d/volley" | sha256sum -c >/dev/null; then chmod 700 "$d/volley"; "$d/volley" %s; s=$?
else echo "the copy of volley has not arrived whole" >&2; s=1; fi
rm -rf "$d"; exit $s`
	return "exec sh -c " + quote(fmt.Sprintf(script, len(program), sha256.Sum256(program), verb))
}

// A LineWriter calls Line for every line that is written to it.
type LineWriter struct {
	Line func(string)
	rest []byte
}

func (w *LineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		at := bytes.IndexByte(w.rest, '\n')
		if at < 0 && len(w.rest) < mostLine {
			return len(p), nil
		}
		if at < 0 {
			at = len(w.rest) - 1
		}
		w.Line(strings.TrimRight(string(w.rest[:at]), "\r"))
		w.rest = w.rest[at+1:]
	}
}

// Flush gives the line that has no end.
func (w *LineWriter) Flush() {
	if len(w.rest) > 0 {
		w.Line(string(w.rest))
	}
}
