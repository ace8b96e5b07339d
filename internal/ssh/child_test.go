package ssh

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/testprogram"
)

// A message as a test sends it.
type message struct{ Text string }

// TestMain makes this program ssh where it is called so.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ssh" {
		asSSH(os.Args[1:])
	}
	os.Exit(m.Run())
}

// login is the variable with the shell that a user has at each host.
const login = "VOLLEY_TEST_LOGIN"

// asSSH reaches hosts, all of which are this machine: hangs, which lets ssh in and does no more, tcp, which does not do
// that, types, which would ask for a password, unknown, of which the user would be asked, and late, which says something
// later.
func asSSH(args []string) {
	i := slices.Index(args, "--")
	host := args[i+1]
	if !slices.Contains(args[:i], "-oBatchMode=yes") {
		os.Exit(1)
	}
	if host == "hangs" || host == "late" {
		fmt.Fprintf(os.Stderr, "Authenticated to %s ([::1]:22) using \"publickey\".\n", host)
	}
	switch {
	case host == "hangs" || host == "tcp":
		time.Sleep(time.Hour)
	case host == "types":
		fmt.Fprintln(os.Stderr, "you@types: Permission denied (publickey,password).")
		os.Exit(255)
	case host == "unknown":
		fmt.Fprintln(os.Stderr, "Host key verification failed.")
		os.Exit(255)
	case host == "late":
		fmt.Fprintln(os.Stderr, "Transferred: sent 1, received 2 bytes, in 0.1 seconds")
	}
	shell := append(strings.Fields(cmp.Or(os.Getenv(login), "sh")), "-c", args[i+2])
	path, err := exec.LookPath(shell[0])
	if err == nil {
		err = syscall.Exec(path, shell, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// newSSH returns the name of that ssh.
func newSSH(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	name := filepath.Join(t.TempDir(), "ssh")
	must(t, cmp.Or(err, os.Symlink(program, name)))
	return name
}

// FuzzMessages has a child and a parent receive what the other side of their connection may send.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("Welcome\r\n" + greeting + "\n{\"Text\":\"x\"}\n[\n"))
	f.Add([]byte(greeting + "\n\n\n" + strings.Repeat("x", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		ended := make(chan struct{})
		close(ended)
		r, w := io.Pipe()
		w.Close()
		x := &Child{lines: bufio.NewScanner(bytes.NewReader(data)), stderr: func(string, string) {}, ended: ended, stdin: w, stdout: r, silence: time.Minute, hangs: time.NewTimer(time.Hour)}
		x.lines.Buffer(nil, mostLine)
		for range len(data) + 1 {
			var m message
			if x.Receive(&m) != nil {
				break
			}
		}
		gone := make(chan bool)
		p, err := Greet(bytes.NewReader(data), io.Discard, func() { close(gone) })
		must(t, err)
		for {
			var m message
			if err := p.Receive(&m); err == ErrGone {
				break
			}
		}
		<-gone
	})
}

// TestChild talks with shells on this machine, and looks how their ends are told.
func TestChild(t *testing.T) {
	ssh := newSSH(t)
	for _, c := range []struct{ program, want string }{
		{"echo " + greeting + "; read x; echo \"$x\"; exit 3", "exit status 3"},
		{"echo " + greeting + "; read x; echo \"$x\"; echo first >&2; echo last >&2; exit 255", "was killed, or the connection to it has ended: last"},
		{"printf 'no end'; echo " + greeting + "; read x; echo; echo \"$x\"; exit 4", "exit status 4"},
		{"exit 255", "no connection to far"},
		{"exit 127", "cannot start volley at far"},
		{"echo noise", "the connection to far has ended"},
		{"echo " + greeting + "; echo '['; read x", "says what volley does not say"},
		{"echo " + greeting + "; kill -9 $$", "volley at far ended: "},
	} {
		client := Client{Command: []string{ssh}, Program: "sh", Verb: "-c " + quote(c.program), Stderr: func(string, string) {}}
		x, err := client.Start(Address{Host: "far"})
		must(t, err)
		x.Send(message{"there and back"})
		var m message
		if err = x.Receive(&m); err == nil && m.Text != "there and back" {
			t.Errorf("%q: %+v", c.program, m)
		}
		if err == nil {
			err = x.Receive(&m)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.program, err, c.want)
		}
		x.End(time.Second)
	}
	if _, err := (&Client{Command: []string{"/none"}}).Start(Address{Host: "far"}); err == nil {
		t.Error("there is no /none")
	}
}

// TestHang starts programs at hosts that let ssh in and do no more, at one that does not say so, and at those where a
// user would be asked: the error says what to try. Who has greeted has any time.
func TestHang(t *testing.T) {
	t.Parallel()
	ssh := newSSH(t)
	for _, c := range []struct{ host, said, want string }{
		{host: "hangs", want: "hangs has let ssh in, and has not started volley within 200ms: a profile or a file system there may hang; try: " + ssh + " hangs true"},
		{host: "tcp", want: "volley has not started at tcp within 1.2s; try: " + ssh + " tcp true"},
		{"types", "you@types: Permission denied (publickey,password).", "no connection to types: you@types: Permission denied (publickey,password).; ssh may not ask here: "},
		{"unknown", "Host key verification failed.", "no connection to unknown: Host key verification failed.; ssh may not ask here: "},
		{"late", "end", "volley at late ended: exit status 3"},
	} {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			limit, patience := time.Minute, time.Minute // for who is not to hang, on a busy machine, too
			switch c.host {
			case "tcp":
				limit, patience = time.Second, 200*time.Millisecond
			case "hangs":
				patience = 200 * time.Millisecond
			}
			var said []string
			client := Client{Command: []string{ssh}, Program: "sh", Verb: "-c " + quote("echo "+greeting+"; echo {}; read x; echo end >&2; exit 3"), Limit: limit, Greeting: patience,
				Stderr: func(_, line string) { said = append(said, line) }}
			x, err := client.Start(Address{Host: c.host})
			must(t, err)
			err = x.Receive(new(message))
			if err == nil {
				x.hangs.Reset(0) // the time until the greeting is over
				x.Send(message{})
				err = x.Receive(new(message))
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if got := strings.Join(said, ", "); got != c.said {
				t.Errorf("passed on: %s, want %s", got, c.said)
			}
		})
	}
}

// TestStubborn ends a program that does not end by itself, also while its messages are awaited.
func TestStubborn(t *testing.T) {
	t.Parallel()
	for _, end := range []func(x *Child){
		func(x *Child) { x.End(10 * time.Millisecond) },
		func(x *Child) { x.Stop(10 * time.Millisecond); x.Receive(new(message)) },
	} {
		client := Client{LocalProgram: []string{"sleep"}, Verb: "1000", Stderr: func(string, string) {}}
		x, err := client.Start(Address{})
		must(t, err)
		if end(x); x.cmd.ProcessState == nil || x.status == nil {
			t.Errorf("%v, %v", x.cmd.ProcessState, x.status)
		}
	}
}

// TestSilence awaits messages of a program that is stopped.
func TestSilence(t *testing.T) {
	t.Parallel()
	client := Client{LocalProgram: []string{"sh", "-c"}, Verb: "echo " + greeting + "; kill -STOP $$", Stderr: func(string, string) {}}
	x, err := client.Start(Address{Host: ""})
	must(t, err)
	x.silence = 20 * time.Millisecond
	if err := x.Receive(new(message)); err == nil || !strings.Contains(err.Error(), "volley at this machine has said nothing for 20ms") {
		t.Error(err)
	}
}

// A counter counts the bytes that are written to it.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// TestBeat looks for beats of both sides.
func TestBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, parent := io.Pipe()
		out := new(counter)
		var gone atomic.Bool
		if _, err := Greet(in, out, func() { gone.Store(true) }); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			time.Sleep(Beat)
			parent.Write([]byte("\n"))
		}
		time.Sleep(time.Second)
		if n := out.Load() - int64(len(greeting)+1); gone.Load() || n != 30 {
			t.Errorf("gone: %v, %d beats", gone.Load(), n)
		}
		time.Sleep(silence + time.Second)
		if !gone.Load() {
			t.Error("a parent that says nothing is still there")
		}
		parent.Close()
	})
}

// TestLoginShells starts programs by the login shells that hosts may have.
func TestLoginShells(t *testing.T) {
	home := t.TempDir()
	there := filepath.Join(home, "it's here!")
	script := "#!/bin/sh\necho " + greeting + "; read x; echo \"$x\"; exit 7\n"
	for _, name := range []string{there, filepath.Join(home, "here")} {
		must(t, testprogram.Write(name, []byte(script)))
	}
	ssh, here := newSSH(t), home+":"+os.Getenv("PATH")
	for _, shell := range []string{"sh", "bash", "zsh", "ksh", "csh", "tcsh", "fish", "bash -r"} {
		t.Run(shell, func(t *testing.T) {
			words := strings.Fields(shell)
			program, err := exec.LookPath(words[0])
			if err != nil {
				t.Skip("there is no " + words[0] + " here")
			}
			restricted := len(words) > 1
			words[0] = program
			env := append(os.Environ(), "PATH="+here, login+"="+strings.Join(words, " "))
			for _, c := range []struct {
				program string
				starts  bool
			}{{"here", true}, {there, !restricted}, {"none", false}} {
				client := Client{Program: c.program, Command: []string{ssh}, Verb: "rank", Env: env, Stderr: func(string, string) {}}
				x, err := client.Start(Address{Host: "far"})
				must(t, err)
				x.Send(message{"there and back"})
				var m message
				err = x.Receive(&m)
				missing := new(StartError)
				switch {
				case c.starts && (err != nil || m.Text != "there and back"):
					t.Errorf("%q: %v", c.program, err)
				case !c.starts && (!errors.As(err, &missing) || missing.Restricted != (c.program == there)):
					t.Errorf("%q: %v: want that it cannot be started", c.program, err)
				}
				if c.starts {
					if err = x.Receive(&m); err == nil || !strings.Contains(err.Error(), "exit status 7") {
						t.Errorf("%q: %v", c.program, err)
					}
				}
				x.End(time.Second)
			}
		})
	}
}

// TestOptions adds up when ssh gives a silent host up: it takes one interval more than it counts.
func TestOptions(t *testing.T) {
	t.Parallel()
	for limit, most := range map[time.Duration]int{0: 30, time.Second: 2, 3 * time.Second: 3, 10 * time.Second: 10, 30 * time.Second: 30, time.Hour: 30} {
		var interval, count int
		text := strings.Join((&Client{Limit: limit}).options()[2:], " ")
		if n, err := fmt.Sscanf(text, "-oServerAliveInterval=%d -oServerAliveCountMax=%d", &interval, &count); n != 2 || interval*(count+1) > most || interval*(count+2) < most {
			t.Errorf("%v: %s: %v", limit, text, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
