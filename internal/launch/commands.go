package launch

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

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/ssh"
)

// Commands are what a group file has a shell do at the host of a node, before protect reads the node and after that.
type Commands struct {
	Pre, Post string        // "": none
	Limit     time.Duration // for each
}

const commandGrace = 5 * time.Second // from the request to end until what is left is killed

// What protect has come to, as post hears it.
const (
	ResultOK      = "ok"
	ResultFailed  = "failed"  // the earlier protection is in force
	ResultUnknown = "unknown" // either is
)

// resultOfAll returns what protect has come to by what ranks say, some of which may only have heard that it failed.
func resultOfAll(results []string) string {
	for _, result := range []string{ResultOK, ResultFailed} { // one that knows is enough
		if slices.Contains(results, result) {
			return result
		}
	}
	return ResultUnknown
}

// A Commander runs the commands of a node at its host.
type Commander struct {
	NodeCommands
	Dir     string // of the node, here
	Environ []string
	Say     func(c *Commander, command, line string) // hears what a command says

	mu    sync.Mutex // is held while a command runs
	began bool       // pre has begun, so that post is due
	err   error      // of post
}

// pre runs the command that comes before the verb.
func (c *Commander) pre(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.began = true
	return c.run(ctx, "pre", c.Pre)
}

// post runs the command that comes after the verb, once. Nothing but its limit ends it.
func (c *Commander) post(result string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began {
		c.began = false
		c.err = c.run(context.Background(), "post", c.Post, "VOLLEY_RESULT="+result)
	}
	return c.err
}

// run runs a command of a shell, and prints what it says.
func (c *Commander) run(ctx context.Context, name, command string, environ ...string) error {
	if command == "" {
		return nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	tooLong := fmt.Errorf("it took longer than %v, which command-timeout of the group file sets", c.Limit)
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, tooLong)
	defer cancel()
	var last []string
	lines := &ssh.LineWriter{Line: func(line string) {
		if last = append(last, printable.Text(line)); len(last) > 5 {
			last = last[1:]
		}
		if !c.Quiet {
			c.Say(c, name, line)
		}
	}}
	x := exec.CommandContext(ctx, "sh", "-c", command)
	x.Env = slices.DeleteFunc(slices.Clone(c.Environ), func(v string) bool { return strings.HasPrefix(v, engine.SecretVariable+"=") })
	x.Env = append(append(x.Env, "VOLLEY_VERB=protect", "VOLLEY_COMMAND="+name, "VOLLEY_NODE="+c.Name, "VOLLEY_DIR="+dir, "VOLLEY_META="+c.Meta), environ...)
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
	case cause == tooLong:
		err = tooLong
	case cause != nil:
		return cause
	}
	output := ""
	if last != nil {
		output = ": " + strings.Join(last, "; ")
	}
	// The code of the command is not that of this process.
	return exit.WithCode(fmt.Errorf("%s of %s failed: %q: %w%s", name, c.Name, shorten(command), err, output), exit.Failed)
}

// shorten returns the beginning of a text, as a message has room for it.
func shorten(text string) string {
	const limit = 200
	if text = strings.TrimSpace(text); len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

// Between runs a verb between the commands of nodes here. The verb returns its result for post beside its error.
func Between(ctx context.Context, list []*Commander, verb func() (result string, err error)) error {
	runAll := func(f func(c *Commander) error) error {
		errs := make([]error, len(list))
		var wg sync.WaitGroup
		for i, c := range list {
			wg.Go(func() { errs[i] = f(c) })
		}
		wg.Wait()
		return inLine(errs...)
	}
	result := ResultFailed
	err := runAll(func(c *Commander) error { return c.pre(ctx) })
	if err == nil {
		result, err = verb()
	}
	after := runAll(func(c *Commander) error { return c.post(result) })
	return afterwards(result, err, after)
}

// afterwards returns the error of a verb after which the commands of nodes have failed.
func afterwards(result string, err, after error) error {
	switch {
	case after == nil:
		return err
	case err == nil && result == ResultOK:
		return fmt.Errorf("the group is protected, and %w", after)
	}
	return inLine(err, after)
}

// inLine is [errors.Join] in one line.
func inLine(errs ...error) (joined error) {
	for _, err := range errs {
		switch {
		case joined == nil:
			joined = err
		case err != nil:
			joined = fmt.Errorf("%w; %w", joined, err)
		}
	}
	return joined
}

// prepare has all ranks run what comes before the verb, and say anew who they are.
func (l *Launch) prepare() {
	l.forEach(func(_ int, x *Far) error {
		if x.NodeCommands == nil || x.Absent != "" {
			return nil
		}
		l.mu.Lock()
		x.patience += x.NodeCommands.Limit + 2*commandGrace // for what is under way, and for what comes after it
		l.mu.Unlock()
		if err := x.Child.Send(x.NodeCommands); err != nil {
			return err
		}
		m, err := l.next(x)
		switch {
		case errors.Is(err, errEnd):
			return exit.WithCode(errors.New(x.ending.Text), x.ending.Code)
		case err == nil && m.Hello == nil:
			err = errors.New("a message that does not belong here")
		}
		if err == nil {
			x.Hello = *m.Hello
		}
		return err
	})
}

// after has the ranks that have ended run what comes after the verb, and returns the error of that. Where the run was
// stopped, they do so by themselves.
func (l *Launch) after() (result string, err error) {
	var results []string
	for _, x := range l.Ranks {
		if x.ending != nil {
			results = append(results, x.ending.Result)
		}
	}
	result = resultOfAll(results)
	errs := make([]error, len(l.Ranks))
	l.forEach(func(i int, x *Far) error {
		if x.NodeCommands == nil || x.Absent != "" || x.ending == nil || l.isStopped() {
			return nil
		}
		ending := x.ending
		if err := x.Child.Send(outcome{result}); err != nil {
			return err
		}
		if _, err := l.next(x); !errors.Is(err, errEnd) {
			return err
		}
		if x.ending.Text != "" {
			errs[i] = errors.New(x.ending.Text)
		}
		x.ending = ending
		return nil
	})
	return result, inLine(errs...)
}

// obey runs what the launch orders before the verb, which does not run after an error.
func (r *Rank) obey(ctx context.Context, dir string) (*Commander, error) {
	c := &Commander{Dir: dir, Environ: r.Environ, Say: r.Say}
	if err := r.parent.Receive(&c.NodeCommands); err != nil {
		return nil, err
	}
	r.due.Store(c)
	err := c.pre(ctx)
	if err != nil {
		err = afterwards(ResultFailed, err, c.post(ResultFailed))
	}
	return c, err
}

// settle runs what comes after the verb: with the result of all ranks, or that of this one where the launch has gone.
func (r *Rank) settle(c *Commander, mine string) {
	result := outcome{mine}
	r.parent.Receive(&result)
	last := Ending{Result: result.Result}
	if err := c.post(result.Result); err != nil {
		last.Text, last.Code = r.Message(err), exit.Failed
	}
	r.Report(last)
}
