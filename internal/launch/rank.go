package launch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"volley"
	"volley/engine"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/ssh"
	"volley/transport/tcp"
)

// A Rank is one rank of a launch, in the process that the launch has started for it.
type Rank struct {
	Input       io.Reader // from the launch, and to it
	Output      io.Writer
	Environ     []string
	Confinement Confinement
	Interval    time.Duration // the launch hears of progress

	// Exit, unless nil, ends the process where the launch has gone and the verb has not ended within Limit.
	Exit  func()
	Limit time.Duration

	LogTo   func(verbose, json bool) *slog.Logger
	Message func(error) string // an error as the launch prints it

	Verb func(ctx context.Context, r *Rank) // runs that of Start

	Start
	*engine.Listener // once the verb runs
	table
	parent *ssh.Parent

	mu     sync.Mutex // guards what follows
	untold message    // progress that the launch has not heard of
	told   time.Time
}

// Serve does what the launch says, as far as it may.
func (r *Rank) Serve(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.parent, err = ssh.Greet(r.Input, r.Output, func() {
		cancel(ssh.ErrGone)
		if r.Exit != nil {
			time.AfterFunc(r.Limit-ssh.Beat, r.Exit)
		}
	})
	if err == nil {
		err = r.serve(ctx)
	}
	if ctx.Err() != nil || errors.Is(err, ssh.ErrGone) || errors.Is(err, syscall.EPIPE) { // the launch knows why
		return nil
	}
	return err
}

func (r *Rank) serve(ctx context.Context) error {
	var sent Start
	if err := r.parent.Receive(&sent); err != nil {
		return err
	}
	var err error
	if r.Start, err = r.Confinement.Admit(sent); err != nil {
		return r.refuse(err)
	}
	log := r.LogTo(r.flag("verbose") == "true", r.flag("log-format") == "json")
	h := Hello{Version: volley.Version, PID: os.Getpid(), Node: protection.Identity{Node: -1}}
	if r.Dir != "" {
		h.Node = Identify(r.Dir, r.Roots)
	}
	if via := strings.Fields(r.getenv("SSH_CONNECTION")); len(via) == 4 && net.ParseIP(via[2]) != nil {
		h.Address = via[2]
	}
	if err := r.parent.Send(message{Hello: &h}); err != nil {
		return err
	}
	if err = r.takePart(ctx, log); err == nil {
		<-ctx.Done() // until the launch has heard of all ends: others may be receiving yet
	}
	return err
}

// Identify returns which node a directory is, or a root of snapshots.
func Identify(dir string, root bool) protection.Identity {
	if root {
		return group.IdentifyRoot(dir)
	}
	return group.Identify(dir)
}

func (r *Rank) refuse(err error) error {
	return r.parent.Send(message{End: &Ending{Text: r.Message(err), Code: exit.Code(err)}})
}

func (r *Rank) getenv(name string) string { return Getenv(r.Environ, name) }

// takePart runs the verb with the others.
func (r *Rank) takePart(ctx context.Context, log *slog.Logger) error {
	var terms engine.Run
	err := r.parent.Receive(&terms)
	if err != nil {
		return err
	}
	terms.Log = log
	if r.Listener, err = engine.Listen(terms); err != nil {
		return r.refuse(err)
	}
	if err = r.parent.Send(message{Listen: r.Address()}); err == nil {
		err = r.parent.Receive(&r.table)
	}
	if err == nil {
		r.Verb(ctx, r)
	}
	return err
}

// Join brings this rank together with the others.
func (r *Rank) Join(limit time.Duration) (*tcp.Endpoint, error) {
	return r.Listener.Join(context.Background(), r.table.Addresses, limit)
}

// Progress tells the launch of more bytes that are done, and of more that have to be, from time to time.
func (r *Rank) Progress(finished, added int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untold.Finished, r.untold.Added = r.untold.Finished+finished, r.untold.Added+added
	if (r.untold.Finished != 0 || r.untold.Added != 0) && time.Since(r.told) > r.Interval {
		r.parent.Send(r.untold)
		r.untold, r.told = message{}, time.Now()
	}
}

// Report tells the launch how this rank has ended.
func (r *Rank) Report(mine Ending) { r.parent.Send(message{End: &mine}) }

// Write sends what a verb prints.
func (r *Rank) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), 64<<10)]
		if err := r.parent.Send(message{Output: part}); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[len(part):]
	}
	return len(p), nil
}

// Getenv is [os.Getenv] for an environment as os.Environ has it.
func Getenv(environ []string, name string) string {
	for _, x := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(x, name+"="); ok {
			return value
		}
	}
	return ""
}
