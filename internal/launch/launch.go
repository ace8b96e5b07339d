// Package launch starts the ranks of a run at hosts, and is what a rank is there: the verb, its options and the rank's
// node travel as data.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"volley"
	"volley/engine"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/ssh"
)

// Verb is the only argument of volley at a host.
const Verb = "rank"

// OnlyFlag is a flag of the verb.
const OnlyFlag = "only"

// A Launch is a run whose ranks this process starts at hosts.
type Launch struct {
	ssh.Client
	Ranks []*Far
	Terms engine.Run          // what all ranks have in common
	Part  protection.SetIndex // the group is

	Missing  bool          // it goes on where nodes cannot be reached
	Down     bool          // and where their hosts do not answer: the verb says what that means
	Advises  bool          // it says how the nodes of a host that does not answer are recovered elsewhere
	Target   *ssh.Address  // where files of lost nodes come; nil: where they were
	Patience time.Duration // with a rank, from the end of its run to that of its process

	Output   io.Writer                       // gets what ranks print
	Progress func(finished, added int64)     // hears how far those are whose Watch is set
	Note     func(values map[string]float64) // gets the values of their reports
	Say      func(Saying)                    // says what failed
	Silent   bool                            // ends of ranks are not said: of a set, the report does
	JSON     bool                            // what is said goes to a log of JSON

	release func() bool // of the context

	mu      sync.Mutex // guards what follows, and Out
	stopped bool
	cause   error // that the launch found first
}

// A Far is a rank at a host, as its launch sees it.
type Far struct {
	ssh.Address
	HostName string // that the user has named
	*ssh.Child
	Start
	Hello

	address string
	ending  *Ending
}

// Begin starts the ranks. End ends them.
func (l *Launch) Begin(ctx context.Context) error {
	l.greetAll(ctx)
	if l.Down && !l.isStopped() {
		if err := l.standIn(); err != nil {
			return err
		}
	}
	if l.isStopped() {
		return l.verdict(ctx)
	}
	return nil
}

// Order has the ranks be in this order.
func (l *Launch) Order(order []int) {
	ranks := make([]*Far, len(order))
	for i, index := range order {
		ranks[i] = l.Ranks[index]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Ranks = ranks
}

// Set returns a launch whose ranks are some of these, which have begun, and those alone meet.
func (l *Launch) Set(ranks []*Far, part protection.SetIndex, output io.Writer) *Launch {
	return &Launch{Client: l.Client, Ranks: ranks, Terms: l.Terms, Part: part, Patience: l.Patience,
		Output: output, Progress: l.Progress, Note: l.Note, Say: l.Say, Silent: true, JSON: l.JSON}
}

// End ends all ranks, and waits for that.
func (l *Launch) End() {
	l.release()
	l.stop()
	l.forEach(func(_ int, x *Far) error {
		if x.Child != nil {
			x.Child.End(l.Patience)
		}
		return nil
	})
	for _, x := range l.Ranks {
		if x.Child == nil || !x.Child.Abandoned() || x.ending != nil || x.Hello.PID <= 0 {
			continue
		}
		text := fmt.Sprintf("volley at %s does not end: process %d there", x.Label(), x.Hello.PID)
		if x.Dir != "" {
			text += fmt.Sprintf(" holds the lock of %s until it has, if it has come so far", x.Start.Name)
		}
		l.Say(Saying{Text: fmt.Sprintf("%s. A signal may have stopped it, or the host is cut off. To end it: %s", text, l.Line(x.Address, fmt.Sprintf("kill -KILL %d", x.Hello.PID))), Host: x.Label()})
	}
}

// greetAll starts all ranks, one after the other at each host.
func (l *Launch) greetAll(ctx context.Context) {
	l.release = context.AfterFunc(ctx, l.stop)
	type login struct {
		sync.Mutex
		down error
	}
	logins := map[string]*login{}
	for _, x := range l.Ranks {
		logins[x.Host] = new(login)
	}
	l.forEach(func(_ int, x *Far) error {
		host := logins[x.Host]
		host.Lock() // an sshd refuses many at once
		defer host.Unlock()
		err := host.down
		if err == nil {
			err = l.greet(x)
		}
		dead := errors.As(err, new(*ssh.DownError))
		if dead {
			host.down = err // not once more for each node
		}
		if dead && l.Advises {
			err = fmt.Errorf("%w. %s", err, group.ElsewhereAdvice)
		}
		if err != nil && (l.Missing || l.Down && dead) && ctx.Err() == nil {
			x.Absent, err = err.Error(), nil
		}
		return err
	})
}

// Meet has the ranks meet, and waits for their ends.
func (l *Launch) Meet(ctx context.Context) error {
	route, table := l.route(), table{SetIndex: l.Part}
	l.forEach(func(rank int, x *Far) error {
		run := l.Terms
		run.Rank, run.Size, run.Advertise = rank, len(l.Ranks), x.Hello.Address
		if ip := net.ParseIP(x.Hello.Address); ip == nil || ip.IsLoopback() {
			run.Advertise = route
		}
		run.Bind = cmp.Or(run.Bind, run.Advertise)
		if err := x.Child.Send(run); err != nil {
			return err
		}
		m, err := l.next(x)
		x.address = m.Listen
		return err
	})
	for _, x := range l.Ranks {
		table.Addresses = append(table.Addresses, x.address)
	}
	if !l.isStopped() {
		l.forEach(func(_ int, x *Far) error { return x.Child.Send(table) })
		l.forEach(func(_ int, x *Far) error {
			if _, err := l.next(x); !errors.Is(err, errEnd) {
				return cmp.Or(err, errors.New("a message that does not belong here"))
			}
			return nil
		})
	}
	return l.verdict(ctx)
}

// standIn starts ranks in place of nodes that cannot be reached or are empty: where their files are to come, or at any host.
func (l *Launch) standIn() error {
	address := l.Target
	if address == nil {
		i := slices.IndexFunc(l.Ranks, func(x *Far) bool { return x.Absent == "" })
		if i < 0 {
			return errors.New(l.Ranks[0].Absent)
		}
		address = &l.Ranks[i].Address
	}
	l.forEach(func(_ int, x *Far) error {
		if l.Target != nil && x.Hello.Node.Empty {
			x.Absent = "it is empty"
		}
		if x.Absent == "" {
			return nil
		}
		if x.Child != nil {
			x.Child.End(l.Patience)
		}
		x.Address, x.Dir = *address, ""
		return l.greet(x)
	})
	return nil
}

// route returns the address by which other hosts reach this machine, where there are any.
func (l *Launch) route() string {
	for _, x := range l.Ranks {
		if ip := net.ParseIP(x.Hello.Address); ip != nil && !ip.IsLoopback() {
			if c, err := net.Dial("udp", net.JoinHostPort(x.Hello.Address, "1")); err == nil { // sends nothing
				defer c.Close()
				return c.LocalAddr().(*net.UDPAddr).IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// greet starts a rank, which says who it is.
func (l *Launch) greet(x *Far) (err error) {
	l.mu.Lock()
	if x.Child = nil; !l.stopped {
		x.Child, err = l.Start(x.Address)
	}
	l.mu.Unlock()
	if err != nil || x.Child == nil {
		return err
	}
	var m message
	if err = x.Child.Send(x.Start); err == nil {
		m, err = l.next(x)
	}
	if errors.Is(err, errEnd) { // it refuses
		err, x.ending = exit.WithCode(fmt.Errorf("%s: %s", x.Label(), x.ending.Text), x.ending.Code), nil
	}
	if err != nil {
		if missing := new(ssh.StartError); errors.As(err, &missing) {
			advice := "scp copies this one, and --remote-path says where volley is there"
			if missing.Restricted {
				advice = "a restricted login shell runs only what its PATH has: put volley there, and use --remote-path volley"
			}
			err = fmt.Errorf("%w; %s", err, advice)
		}
		return err
	}
	if m.Hello == nil {
		return fmt.Errorf("volley at %s says what volley %s, which runs here, does not: install the same version at both", x.Label(), volley.Version)
	}
	if m.Hello.Version != volley.Version {
		host, _ := os.Hostname()
		return fmt.Errorf("%s runs volley %s, and this machine, %s, runs volley %s: install the same version at both", x.Label(), m.Hello.Version, host, volley.Version)
	}
	x.Hello = *m.Hello
	return nil
}

// errEnd says that a rank has said how it ended.
var errEnd = errors.New("the rank has ended")

// next returns the next message of a rank which is not output.
func (l *Launch) next(x *Far) (m message, err error) {
	for {
		m = message{}
		if err := x.Child.Receive(&m); err != nil {
			return m, err
		}
		switch {
		case m.End != nil:
			x.ending = m.End
			return m, errEnd
		case m.Finished != 0 || m.Added != 0:
			if x.Watch { // else nobody has asked
				l.Progress(m.Finished, m.Added)
			}
			continue
		case m.Output == nil:
			return m, nil
		}
		l.mu.Lock()
		err := printable.Fprintf(l.Output, "%s", printable.Lines(string(m.Output)))
		l.mu.Unlock()
		if err != nil {
			return m, err
		}
	}
}

// forEach calls f for all ranks at once. The first error is the cause for all to stop.
func (l *Launch) forEach(f func(rank int, x *Far) error) {
	var wg sync.WaitGroup
	for rank, x := range l.Ranks {
		wg.Go(func() {
			if err := f(rank, x); err != nil {
				l.mu.Lock()
				if !l.stopped && !errors.Is(err, errEnd) {
					l.cause = cmp.Or(l.cause, err)
				}
				l.mu.Unlock()
				l.stop()
			}
		})
	}
	wg.Wait()
}

// isStopped reports whether the ranks have to end.
func (l *Launch) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// stop ends all ranks, and does not wait.
func (l *Launch) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for _, x := range l.Ranks {
		if x.Child != nil {
			x.Child.Stop(l.Patience)
		}
	}
}

// verdict says how the ranks ended, and returns the error of all.
func (l *Launch) verdict(ctx context.Context) error {
	for _, x := range l.Ranks {
		if x.ending != nil {
			l.Note(x.ending.Values)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.cause != nil {
		return l.cause
	}
	list, code := l.ended()
	for _, x := range list {
		if l.Silent {
			break
		}
		l.Say(x)
	}
	if code == exit.OK {
		return nil
	}
	return exit.WithCode(exit.ErrSaid, code)
}

// EndingText returns what ranks have said of their ends, in one line.
func (l *Launch) EndingText() string {
	var texts []string
	list, _ := l.ended()
	for _, x := range list {
		texts = append(texts, x.String())
	}
	return strings.Join(texts, "; ")
}

// ended returns what ranks have said of their ends, and the exit code.
func (l *Launch) ended() (list []Saying, code int) {
	endings := make([]*Ending, len(l.Ranks))
	for rank, x := range l.Ranks {
		endings[rank] = x.ending
	}
	for _, x := range Sayings(endings) {
		if x.Ranks != nil {
			x.Host = l.Ranks[x.Ranks[0]].Label()
		}
		if l.Silent || !l.JSON {
			x = Saying{Text: l.named(x.String())}
		}
		list = append(list, x)
	}
	return list, Worst(endings)
}

var rankNumber = regexp.MustCompile(`\b(?:[Rr]ank|process) (\d+)\b`)

// named adds to the numbers of ranks which hosts they are.
func (l *Launch) named(text string) string {
	return rankNumber.ReplaceAllStringFunc(text, func(match string) string {
		rank, err := strconv.Atoi(rankNumber.FindStringSubmatch(match)[1])
		if err != nil || rank >= len(l.Ranks) {
			return match
		}
		return fmt.Sprintf("%s (%s)", match, l.Ranks[rank].Label())
	})
}
