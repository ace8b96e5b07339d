package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"volley"
	"volley/engine"
	"volley/group"
	"volley/group/site"
	"volley/internal/ssh"
)

// rankVerb is the verb that a launch starts at each host.
const rankVerb = "rank"

// newRank returns the verb of one rank of a launch, which tells it on standard input what to do.
func newRank() *cobra.Command {
	var may confinement
	cmd := &cobra.Command{
		Use:    rankVerb,
		Short:  "Be one rank of a run that volley starts elsewhere",
		Hidden: true,
		Args:   NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := sessionOf(cmd.Context())
			if may.commands && may.only == nil {
				return usagef("--%s: it is beside --%s DIR, without which a key may do all", allowCommandsFlag, onlyFlag)
			}
			if err := cmp.Or(named(cmd.Flags(), may.only), may.asked(s.getenv("SSH_ORIGINAL_COMMAND"))); err != nil {
				return err
			}
			if s.own {
				signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write then fails, and the run ends in order
			}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			p, err := ssh.Greet(s.stdin, cmd.OutOrStdout(), func() {
				cancel(ssh.ErrGone)
				if s.own {
					time.AfterFunc(s.limits.end-ssh.Beat, func() {
						if c := s.due.Load(); c != nil {
							c.post(resultUnknown)
						}
						os.Exit(exitFailed)
					})
				}
			})
			if err == nil {
				err = s.beRank(ctx, cmd, p, &may)
			}
			if ctx.Err() != nil || errors.Is(err, ssh.ErrGone) || errors.Is(err, syscall.EPIPE) { // the launch knows why
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&may.only, onlyFlag, nil, "refuse everything outside these `DIR`s and files, separated by commas")
	cmd.Flags().BoolVar(&may.commands, allowCommandsFlag, false, "beside --only, run pre and post of a group file")
	return cmd
}

// beRank does what the launch says, as far as it may.
func (s *session) beRank(ctx context.Context, cmd *cobra.Command, p *ssh.Parent, may *confinement) error {
	var sent start
	if err := p.Receive(&sent); err != nil {
		return err
	}
	refuse := func(err error) error {
		return p.Send(said{End: &ending{Text: message(err), Code: exitCode(err)}})
	}
	first, err := may.admit(sent)
	if err != nil {
		return refuse(err)
	}
	s.logTo(slices.Contains(first.Args, "--verbose=true"), slices.Contains(first.Args, "--log-format=json"))
	h := hello{Version: volley.Version, PID: os.Getpid(), Node: group.Identity{Node: -1}}
	if first.Dir != "" {
		h.Node = identify(first.Dir, first.Roots)
		h.Domain = s.getenv(first.Variable)
	}
	if via := strings.Fields(s.getenv("SSH_CONNECTION")); len(via) == 4 && net.ParseIP(via[2]) != nil {
		h.Address = via[2]
	}
	if first.Look != nil {
		found := site.Look(ctx, *first.Look)
		h.Found, h.Build = &found, build()
	}
	h.Clock = time.Now()
	if err := p.Send(said{Hello: &h}); err != nil {
		return err
	}
	result := func(string) {}
	if first.Commanded {
		c, err := s.obey(ctx, p, sent.Dir)
		if err != nil {
			return refuse(err)
		}
		result = func(mine string) { s.settle(p, c, mine) }
		if first, err = may.admit(sent); err != nil { // links may lead elsewhere now
			return refuse(afterwards(resultFailed, err, c.post(resultFailed)))
		}
		h.Node = identify(first.Dir, first.Roots) // which pre may have made
		if err := p.Send(said{Hello: &h}); err != nil {
			result(resultFailed)
			return err
		}
	}
	mine, err := s.takePart(ctx, cmd, p, may, first)
	if result(mine); err == nil {
		<-ctx.Done() // until the launch has heard of all ends: others may be receiving yet
	}
	return err
}

// takePart runs the verb with the others, and returns what post is to hear.
func (s *session) takePart(ctx context.Context, cmd *cobra.Command, p *ssh.Parent, may *confinement, first start) (result string, err error) {
	var terms engine.Run
	if err := p.Receive(&terms); err != nil {
		return resultFailed, err
	}
	terms.Log = s.log
	at := &place{start: first, parent: p, every: s.limits.progress}
	if err = may.terms(terms); err == nil {
		at.Place, err = engine.Listen(terms)
	}
	if err != nil {
		at.report(ending{Text: message(err), Code: exitCode(err)})
		return resultFailed, nil
	}
	if err := p.Send(said{Listen: at.Address()}); err != nil {
		return resultFailed, err
	}
	if err := p.Receive(&at.table); err != nil {
		return resultFailed, err
	}
	verb := &session{surroundings: s.surroundings, at: at}
	verb.run(ctx, first.Args, output{p}, cmd.ErrOrStderr())
	return cmp.Or(verb.came, resultFailed), nil
}

// A place is that of a rank in a launch.
type place struct {
	*engine.Place
	start
	table
	parent *ssh.Parent
	every  time.Duration // the launch hears of progress

	mu     sync.Mutex // guards what follows
	untold said       // progress that the launch has not heard of
	told   time.Time
}

// progress tells the launch of more bytes that are done, and of more that have to be, from time to time.
func (p *place) progress(done, more int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untold.Done, p.untold.More = p.untold.Done+done, p.untold.More+more
	if (p.untold.Done != 0 || p.untold.More != 0) && time.Since(p.told) > p.every {
		p.parent.Send(p.untold)
		p.untold, p.told = said{}, time.Now()
	}
}

// join is that of a comm.
func (p *place) join(_ context.Context, o *joining) (*party, error) {
	t, err := p.Join(context.Background(), p.table.Addresses, o.timeout)
	if err != nil {
		return nil, err
	}
	return &party{Transport: t, here: p.Place, host: p.Name, gather: p.gather, part: func(mine ending, _ *session) int {
		p.report(mine)
		return mine.Code
	}}, nil
}

// gather is that of a party, by the launch.
func (p *place) gather(_ context.Context, record []byte, _ time.Duration) (all []json.RawMessage, err error) {
	if err = p.parent.Send(said{Record: record}); err == nil {
		err = p.parent.Receive(&all)
	}
	return all, err
}

// report tells the launch how this rank has ended.
func (p *place) report(mine ending) { p.parent.Send(said{End: &mine}) }

// output sends what a verb prints.
type output struct{ *ssh.Parent }

func (o output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), 64<<10)]
		if err := o.Send(said{Out: part}); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[len(part):]
	}
	return len(p), nil
}
