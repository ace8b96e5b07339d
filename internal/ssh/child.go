package ssh

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Client starts programs.
type Client struct {
	Command      []string // ssh, with arguments of the user's
	Program      string   // the program's name or path there, as a shell finds it; ~/ is the user's home
	LocalProgram []string // the program on this machine, for addresses without a host
	Verb         string   // its only argument

	// Greeting is how long a program there may take from where ssh is let in to its first message; 0: any time. A profile,
	// or a file system that does not answer, may keep it for ever.
	Greeting time.Duration

	// Limit lowers the minute for which a host, or the program there, may be silent before it counts as dead; 0 does not.
	Limit time.Duration

	Env []string // of the programs here and of ssh; nil: that of this process

	Stderr func(host, line string) // is called with what is said there; calls do not overlap
}

// A Child is a program on another host, or here. One goroutine receives.
type Child struct {
	Address
	sender
	cmd       *exec.Cmd
	stdin     io.Closer
	stdout    *io.PipeReader
	lines     *bufio.Scanner
	lastLine  string // the last line of stderr
	stderr    func(host, line string)
	greeted   atomic.Bool
	silence   time.Duration // that ends it
	mute      atomic.Bool   // it was killed as it said nothing
	abandoned atomic.Bool   // its connection was ended, and nobody knows whether it has
	ended     chan struct{}
	status    error // once ended

	try      string        // a command of a shell that shows whether it starts
	patience time.Duration // from where ssh is let in to the greeting
	first    time.Duration // from the start, where ssh does not say that it is let in
	hangs    *time.Timer   // which ends it before it has greeted
	let      atomic.Bool   // ssh is let in
	hung     atomic.Bool   // it was killed as it did not greet
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

// connects is how long ssh may take to connect.
func (c *Client) connects() time.Duration {
	return max(time.Second, min(cmp.Or(c.Limit, silence), silence/2).Truncate(time.Second))
}

// options are for every ssh: no terminal, no questions, no ports, it says when it is let in, and a dead host is noticed,
// one interval later than it counts.
func (c *Client) options() []string {
	seconds := int(c.connects() / time.Second)
	interval := max(1, seconds/6)
	option := func(name string, n int) string { return fmt.Sprintf("-o%s=%d", name, max(1, n)) }
	return []string{"-T", "-oClearAllForwardings=yes", option("ServerAliveInterval", interval), option("ServerAliveCountMax", seconds/interval-2), option("ConnectTimeout", seconds), "-oLogLevel=VERBOSE", "-oBatchMode=yes"}
}

// Start starts a program and returns at once: Receive says what is wrong with it.
func (c *Client) Start(a Address) (*Child, error) {
	line := append(slices.Clone(c.LocalProgram), c.Verb)
	if a.Host != "" {
		line = slices.Concat(c.Command, c.options())
		line = append(line, "--", a.Host, quoteProgram(c.Program)+" "+c.Verb)
	}
	r, w := io.Pipe()
	x := &Child{Address: a, cmd: exec.Command(line[0], line[1:]...), stdout: r, lines: bufio.NewScanner(r), stderr: c.Stderr, ended: make(chan struct{}),
		silence: min(silence, max(cmp.Or(c.Limit, silence), 3*Beat)),
		try:     c.trial(a), patience: cmp.Or(c.Greeting, math.MaxInt64/2)}
	x.lines.Buffer(nil, mostLine)
	stdin, err := x.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	x.stdin, x.output = stdin, stdin
	stderr := &lineWriter{Line: x.hear}
	x.cmd.Stdout, x.cmd.Stderr, x.cmd.Env = w, stderr, c.Env
	x.cmd.WaitDelay = time.Second // the master of a shared connection keeps stderr open
	x.first = x.patience
	if a.Host != "" { // a command that does not say when it is let in
		x.first += c.connects()
	}
	started := make(chan struct{})
	defer close(started)
	x.hangs = time.AfterFunc(x.first, func() { // before it is started, as what it says moves the time
		if <-started; x.cmd.Process != nil && !x.greeted.Load() {
			x.hung.Store(true)
			x.cmd.Process.Kill()
		}
	})
	if err := x.cmd.Start(); err != nil {
		x.hangs.Stop()
		return nil, err
	}
	go func() {
		x.status = x.cmd.Wait()
		x.hangs.Stop()
		stderr.Flush()
		w.Close()
		close(x.ended)
	}()
	go beat(x.ended, x.write)
	return x, nil
}

// trial returns the command that shows whether programs start.
func (c *Client) trial(a Address) string {
	if a.Host == "" {
		return c.LocalProgram[0] + " version"
	}
	return c.Line(a, "true")
}

// Line returns what a user types to run a command of a shell at a host.
func (c *Client) Line(a Address, command string) string {
	if a.Host == "" {
		return command
	}
	line := make([]string, len(c.Command))
	for i, word := range c.Command {
		line[i] = QuoteWord(word)
	}
	return strings.Join(append(line, a.Host, command), " ")
}

// hear takes a line of stderr: some are ssh's own on how the connection is.
func (x *Child) hear(text string) {
	ours := func(line string) bool { return x.Host != "" && strings.HasPrefix(text, line) }
	switch {
	case ours("Authenticated to "): // also where the greeting has come first, on its own way
		if x.let.Store(true); !x.greeted.Load() { // the time until the greeting begins anew
			x.hangs.Reset(x.patience)
		}
		return
	case ours("Authenticated using "), ours("Transferred: sent "), ours("Bytes per second: sent "):
		return
	}
	x.lastLine = text
	x.stderr(x.Label(), text)
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
	timer := time.AfterFunc(x.silence, func() {
		if x.greeted.Load() { // else Greeting is the limit
			x.mute.Store(true)
			x.kill()
		}
	})
	defer timer.Stop()
	for x.lines.Scan() {
		timer.Reset(x.silence)
		login, greets := bytes.CutSuffix(x.lines.Bytes(), []byte(greeting)) // a login may say a line without an end
		switch text := x.lines.Bytes(); {
		case x.greeted.Load() && len(text) == 0: // a beat
		case x.greeted.Load():
			if err := json.Unmarshal(text, v); err != nil {
				return fmt.Errorf("%s says what volley does not say: %w", x.Label(), err)
			}
			return nil
		default: // what a shell says at login
			if greets {
				x.greeted.Store(true)
				x.hangs.Stop()
			}
			if !greets || len(login) > 0 {
				x.stderr(x.Label(), string(login))
			}
		}
	}
	if err := x.lines.Err(); err != nil && err != io.ErrClosedPipe { // which End closes
		return fmt.Errorf("%s says what volley does not say: %w", x.Label(), err)
	}
	return x.failed()
}

// failed ends a program that does not talk any more, and returns the error that says how it ended.
func (x *Child) failed() error {
	x.End(Beat)
	detail := ""
	if x.lastLine != "" {
		detail = ": " + x.lastLine
	}
	exit := new(exec.ExitError)
	errors.As(x.status, &exit)
	asks := exit.ProcessState != nil && exit.ExitCode() == 255 && !x.greeted.Load() &&
		(strings.Contains(x.lastLine, "Permission denied (") || strings.Contains(x.lastLine, "Host key verification failed"))
	switch {
	case x.hung.Load() && x.let.Load():
		return &DownError{fmt.Errorf("%s has let ssh in, and has not started volley within %v: a profile or a file system there may hang; try: %s", x.Label(), x.patience, x.try)}
	case x.hung.Load():
		return &DownError{fmt.Errorf("volley has not started at %s within %v; try: %s", x.Label(), x.first, x.try)}
	case asks:
		return fmt.Errorf("no connection to %s%s; ssh may not ask here: it needs a key without a passphrase, or one in ssh-agent, and the host in known_hosts; try: %s", x.Label(), detail, x.try)
	case x.mute.Load():
		return fmt.Errorf("volley at %s has said nothing for %v%s", x.Label(), x.silence, detail)
	case exit.ProcessState == nil:
		return fmt.Errorf("the connection to %s has ended%s", x.Label(), detail)
	case exit.ExitCode() == 126, exit.ExitCode() == 127, !x.greeted.Load() && unstarted.MatchString(x.lastLine):
		// A restricted shell takes no / in the name of a program.
		return &StartError{fmt.Errorf("cannot start volley at %s%s", x.Label(), detail), strings.Contains(x.lastLine, "restricted")}
	case exit.ExitCode() == 255 && x.greeted.Load():
		return fmt.Errorf("volley at %s was killed, or the connection to it has ended%s", x.Label(), detail)
	case exit.ExitCode() == 255:
		return &DownError{fmt.Errorf("no connection to %s%s", x.Label(), detail)}
	}
	return fmt.Errorf("volley at %s ended: %v%s", x.Label(), x.status, detail)
}

// unstarted is what shells say of a program that they do not start where their exit code does not tell: csh, and bash as
// a restricted shell.
var unstarted = regexp.MustCompile(`: (Command not found\.|Permission denied\.|restricted(: .*)?)$`)

// A DownError says that a host is down, or has not answered in time. It would not for another program either.
type DownError struct{ error }

// A StartError says that a program cannot be started on a host.
type StartError struct {
	error
	Restricted bool // the login shell there permits only some programs, by their names alone
}

// End stops the program, and waits until it has ended.
func (x *Child) End(patience time.Duration) {
	x.Stop(patience)
	x.stdout.Close() // what comes yet is not read
	<-x.ended
}

// Stop closes the standard input of the program, which ends it, and does not wait. After a time it ends the connection.
func (x *Child) Stop(patience time.Duration) {
	x.stdin.Close()
	time.AfterFunc(patience, x.kill)
}

// kill kills a program here, or the ssh that has started one elsewhere.
func (x *Child) kill() {
	if x.cmd.Process.Kill() == nil && x.Host != "" && x.greeted.Load() {
		x.abandoned.Store(true)
	}
}

// Abandoned reports whether a program on another host has not ended when it was told to: a signal may have stopped it, or its
// host be cut off.
func (x *Child) Abandoned() bool { return x.abandoned.Load() }

// quote returns text as one word of a shell. Within quotes csh still takes a ! for its history.
func quote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

// QuoteWord returns a word as a shell reads it: one that a shell takes as it is stays so.
func QuoteWord(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return quote(word)
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./@%+=:,-]+$`)

// quoteProgram quotes the path of a program, but for a ~/ which begins it.
func quoteProgram(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return "~/" + quote(rest)
	}
	return quote(cmp.Or(path, "volley"))
}

// A lineWriter calls Line for every line that is written to it.
type lineWriter struct {
	Line func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		newline := bytes.IndexByte(w.rest, '\n')
		if newline < 0 && len(w.rest) < mostLine {
			return len(p), nil
		}
		if newline < 0 {
			newline = len(w.rest) - 1
		}
		w.Line(strings.TrimRight(string(w.rest[:newline]), "\r"))
		w.rest = w.rest[newline+1:]
	}
}

// Flush gives the line that has no end.
func (w *lineWriter) Flush() {
	if len(w.rest) > 0 {
		w.Line(string(w.rest))
	}
}
