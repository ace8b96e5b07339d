package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"volley/engine"
	"volley/group"
	"volley/internal/printable"
	"volley/internal/ssh"
)

// commands are what a group file has a shell do at the host of a node, before protect reads the node and after that.
type commands struct {
	Pre, Post string        // "": none
	Limit     time.Duration // for each
}

const (
	usualCommandLimit = 10 * time.Minute
	commandGrace      = 5 * time.Second // from the request to end until what is left is killed
)

// What protect has come to, as post hears it.
const (
	resultOK      = "ok"
	resultFailed  = "failed"  // the earlier protection is in force
	resultUnknown = "unknown" // either is
)

// cameTo notes, and returns, what protect has come to.
func (s *session) cameTo(protected bool, err error) string {
	s.noting.Lock()
	defer s.noting.Unlock()
	switch s.came = resultFailed; {
	case protected:
		s.came = resultOK
	case errors.As(err, new(*group.UnsettledError)):
		s.came = resultUnknown
	}
	return s.came
}

// resultOfAll returns what protect has come to by what ranks say, some of which may only have heard that it failed.
func resultOfAll(all []string) string {
	for _, result := range []string{resultOK, resultFailed} { // one that knows is enough
		if slices.Contains(all, result) {
			return result
		}
	}
	return resultUnknown
}

// commanded reports whether a verb runs the commands of nodes: the others read what was protected.
func commanded(cmd *cobra.Command) bool {
	dry, _ := cmd.Flags().GetBool("dry-run")
	return cmd.Name() == "protect" && !dry
}

// A commander runs the commands of a node at its host.
type commander struct {
	commands
	session   *session
	name, dir string // of the node: as the user has it, and here
	meta      string
	quiet     bool

	mu    sync.Mutex // is held while a command runs
	began bool       // pre has begun, so that post is due
	err   error      // of post
}

// pre runs the command that comes before the verb.
func (c *commander) pre(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.began = true
	return c.run(ctx, "pre", c.Pre)
}

// post runs the command that comes after the verb, once. Nothing but its limit ends it.
func (c *commander) post(result string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began {
		c.began = false
		c.err = c.run(context.Background(), "post", c.Post, "VOLLEY_RESULT="+result)
	}
	return c.err
}

// run runs a command of a shell, and prints what it says.
func (c *commander) run(ctx context.Context, which, command string, more ...string) error {
	if command == "" {
		return nil
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return err
	}
	late := fmt.Errorf("it took longer than %v, which command-timeout of the group file sets", c.Limit)
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, late)
	defer cancel()
	var last []string
	lines := &ssh.LineWriter{Line: func(line string) {
		if last = append(last, printable.Text(line)); len(last) > 5 {
			last = last[1:]
		}
		c.say(which, line)
	}}
	x := exec.CommandContext(ctx, "sh", "-c", command)
	x.Env = slices.DeleteFunc(slices.Clone(c.session.environ), func(v string) bool { return strings.HasPrefix(v, engine.SecretVariable+"=") })
	x.Env = append(append(x.Env, "VOLLEY_VERB=protect", "VOLLEY_COMMAND="+which, "VOLLEY_NODE="+c.name, "VOLLEY_DIR="+dir, "VOLLEY_META="+c.meta), more...)
	x.Stdout, x.Stderr = lines, lines
	kill := inGroup(x)
	x.WaitDelay = commandGrace
	err = x.Run()
	lines.Flush()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil { // what it has left running keeps its stdout
		return nil
	}
	if ctx.Err() != nil {
		kill()
	}
	switch cause := context.Cause(ctx); {
	case cause == late:
		err = late
	case cause != nil:
		return cause
	}
	said := ""
	if last != nil {
		said = ": " + strings.Join(last, "; ")
	}
	return &commandError{fmt.Errorf("%s of %s failed: %q: %w%s", which, c.name, shorten(command), err, said)}
}

// A commandError says that a command of a node has failed.
type commandError struct{ error }

// ExitCode is not that of the command.
func (e *commandError) ExitCode() int { return exitFailed }

// shorten returns the beginning of a text, as a message has room for it.
func shorten(text string) string {
	const most = 200
	if text = strings.TrimSpace(text); len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// say prints a line of a command on stderr, with the node's directory.
func (c *commander) say(which, line string) {
	switch s := c.session; {
	case c.quiet:
	case s.json:
		s.log.Warn(line, "verb", "protect", "node", c.name, "command", which)
	default:
		s.saying.Lock()
		defer s.saying.Unlock()
		s.meter.clear()
		printable.Fprintf(s.stderr, "%s: %s: %s\n", c.dir, which, line)
	}
}

// commanders returns those of directories here that have commands.
func (s *session) commanders(cmd *cobra.Command, dirs []string) (list []*commander) {
	if !commanded(cmd) {
		return nil
	}
	quiet, _ := cmd.Flags().GetBool("quiet")
	meta, _ := cmd.Flags().GetString("meta")
	for _, dir := range dirs {
		if of, ok := s.group.commands[dir]; ok {
			list = append(list, &commander{commands: of, session: s, name: dir, dir: dir, meta: meta, quiet: quiet})
		}
	}
	return list
}

// between runs a verb between the commands of nodes here. The verb returns its result for post beside its error.
func between(ctx context.Context, list []*commander, verb func() (result string, err error)) error {
	all := func(f func(c *commander) error) error {
		errs := make([]error, len(list))
		var wg sync.WaitGroup
		for i, c := range list {
			wg.Go(func() { errs[i] = f(c) })
		}
		wg.Wait()
		return inLine(errs...)
	}
	result := resultFailed
	err := all(func(c *commander) error { return c.pre(ctx) })
	if err == nil {
		result, err = verb()
	}
	after := all(func(c *commander) error { return c.post(result) })
	return afterwards(result, err, after)
}

// afterwards returns the error of a verb after which the commands of nodes have failed.
func afterwards(result string, err, after error) error {
	switch {
	case after == nil:
		return err
	case err == nil && result == resultOK:
		return fmt.Errorf("the group is protected, and %w", after)
	}
	return inLine(err, after)
}

// inLine is [errors.Join] in one line.
func inLine(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// An order has a rank run the commands of its node around the verb.
type order struct {
	commands
	Name, Meta string
	Quiet      bool
}

// commanded has the ranks whose nodes have commands wait for orders.
func (l *launch) commanded(cmd *cobra.Command) {
	if !commanded(cmd) {
		return
	}
	quiet, _ := cmd.Flags().GetBool("quiet")
	meta, _ := cmd.Flags().GetString("meta")
	for _, x := range l.ranks {
		if of, ok := l.session.group.commands[x.start.Name]; ok {
			x.start.Commanded, x.order = true, &order{of, x.start.Name, meta, quiet}
		}
	}
}

// prepare has all ranks run what comes before the verb, and say anew who they are.
func (l *launch) prepare() {
	l.each(func(x *far) error {
		if x.order == nil || x.Absent != "" {
			return nil
		}
		l.mu.Lock()
		x.patience += x.order.Limit + 2*commandGrace // for what is under way, and for what comes after it
		l.mu.Unlock()
		if err := x.Child.Send(x.order); err != nil {
			return err
		}
		m, err := l.next(x)
		switch {
		case errors.Is(err, errEnd):
			return exitError{errors.New(x.ending.Text), x.ending.Code}
		case err == nil && m.Hello == nil:
			err = errors.New("a message that does not belong here")
		}
		if err == nil {
			x.hello = *m.Hello
		}
		return err
	})
}

// after has the ranks that have ended run what comes after the verb, and returns the error of that. Where the run was
// stopped, they do so by themselves.
func (l *launch) after() (result string, err error) {
	var said []string
	for _, x := range l.ranks {
		if x.ending != nil {
			said = append(said, x.ending.Result)
		}
	}
	result = resultOfAll(said)
	errs := make([]error, len(l.ranks))
	l.eachRank(func(i int, x *far) error {
		if x.order == nil || x.Absent != "" || x.ending == nil || l.over() {
			return nil
		}
		before := x.ending
		if err := x.Child.Send(outcome{result}); err != nil {
			return err
		}
		if _, err := l.next(x); !errors.Is(err, errEnd) {
			return err
		}
		if x.ending.Text != "" {
			errs[i] = errors.New(x.ending.Text)
		}
		x.ending = before
		return nil
	})
	return result, inLine(errs...)
}

// An outcome tells a rank what the verb has come to at all ranks.
type outcome struct{ Result string }

// obey runs what the launch orders before the verb, which does not run after an error.
func (s *session) obey(ctx context.Context, p *ssh.Parent, dir string) (*commander, error) {
	var o order
	if err := p.Receive(&o); err != nil {
		return nil, err
	}
	c := &commander{commands: o.commands, session: s, name: o.Name, dir: dir, meta: o.Meta, quiet: o.Quiet}
	s.due.Store(c)
	err := c.pre(ctx)
	if err != nil {
		err = afterwards(resultFailed, err, c.post(resultFailed))
	}
	return c, err
}

// settle runs what comes after the verb: with the result of all ranks, or that of this one where the launch has gone.
func (s *session) settle(p *ssh.Parent, c *commander, mine string) {
	all := outcome{mine}
	p.Receive(&all)
	last := ending{Result: all.Result}
	if err := c.post(all.Result); err != nil {
		last.Text, last.Code = message(err), exitFailed
	}
	p.Send(said{End: &last})
}
