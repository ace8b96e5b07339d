package group

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"volley"
	"volley/executor"
	"volley/transport"
)

// Options are those of all verbs. All ranks give the same, but for Timeout.
type Options struct {
	Memory  int64         // bytes of packets that a node holds at a time; 0: volley.DefaultMemory
	Timeout time.Duration // without a message until a run fails; 0: never
	Ports   int           // messages that a node sends, and receives, at a time; 0: 1
	Beta    time.Duration // β of the links; 0: volley.DefaultBeta
	Tau     float64       // τ, in seconds per byte; 0: volley.TauPerByte
}

func (o *Options) defaults() {
	if o.Memory == 0 {
		o.Memory = volley.DefaultMemory
	}
	if o.Ports == 0 {
		o.Ports = volley.DefaultPorts
	}
	if o.Beta == 0 {
		o.Beta = volley.DefaultBeta
	}
	if o.Tau == 0 {
		o.Tau = volley.TauPerByte
	}
}

// An InputError is the caller's to mend: directories or numbers that will not do, or too
// much that is lost.
type InputError struct{ error }

// Unwrap returns the error itself.
func (e *InputError) Unwrap() error { return e.error }

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// IsInputError reports whether an error is the caller's to mend: an [*InputError] or a
// [*TooManyError].
func IsInputError(err error) bool {
	return errors.As(err, new(*InputError)) || errors.As(err, new(*TooManyError))
}

// storing is how many timeouts a rank may be behind while it reads or writes its files.
const storing = 100

// A session is a run of a verb at one rank.
type session struct {
	Options
	t      transport.Transport
	k      int // nodes of the group
	nodes  []*node
	states []*state // of all nodes
	current
}

// terms are what ranks begin with.
type terms struct {
	Nodes   int    // there
	What    string // they are to do
	Options Options
}

// begin takes the directories of the nodes at this rank, and finds out what all nodes hold.
// made says that they have to exist, and what is what all ranks are to do.
func begin(ctx context.Context, t transport.Transport, dirs []string, o Options, made bool, what string) (*session, error) {
	o.defaults()
	s := &session{Options: o, t: t}
	ranks, err := volley.ExchangeValues(ctx, t, terms{len(dirs), what, o}, o.Timeout) // who does not come at all is missed soon
	if err != nil {
		return nil, err
	}
	for r, x := range ranks {
		s.k += x.Nodes
		if x.What != ranks[0].What || x.Options.Ports != ranks[0].Options.Ports || x.Options.Memory != ranks[0].Options.Memory {
			return nil, s.alike(ctx, inputf("process %d was started with other arguments than process 0: %q, %q: start all with the same", r, x.What, ranks[0].What))
		}
	}
	s.Beta, s.Tau = ranks[0].Options.Beta, ranks[0].Options.Tau // all have to choose alike
	if s.k < 2 || s.k < t.Size() {
		return nil, s.alike(ctx, inputf("%d directories: a group has 2 nodes or more; give all of them, each process one or more", s.k))
	}
	for r, x := range ranks {
		if first, end := executor.Hosted(s.k, r, t.Size()); x.Nodes != end-first {
			return nil, s.alike(ctx, inputf("process %d gives %d of %d directories: give each process as many", r, x.Nodes, s.k))
		}
	}
	first, _ := executor.Hosted(s.k, t.Rank(), t.Size())
	for i, dir := range dirs {
		n := &node{index: first + i, dir: dir}
		if n.root, err = resolve(dir, made); err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	if err := apart(s.nodes); err != nil {
		return nil, err
	}
	var mine []*state
	for _, n := range s.nodes {
		x, err := n.load()
		if err != nil {
			return nil, err
		}
		mine = append(mine, x)
	}
	if s.states, err = exchange(ctx, s, mine); err != nil {
		return nil, err
	}
	from := -1
	if s.current, from, err = latest(s.states); err != nil {
		return nil, s.alike(ctx, err)
	}
	if s.generation == 0 {
		return s, nil
	}
	// One node tells all the manifest, which the lost ones have not.
	var text []byte
	for _, n := range s.nodes {
		if n.index != from {
			continue
		}
		for _, path := range []string{n.manifest(s.generation), n.pending(s.generation)} {
			if text, err = os.ReadFile(path); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
	}
	texts, err := volley.Exchange(ctx, t, text, s.storing())
	if err != nil {
		return nil, err
	}
	for _, x := range texts {
		if len(x) > 0 {
			s.text = x
		}
	}
	s.manifest, err = DecodeManifest(s.text)
	return s, err
}

// name returns what to call a node: its directory, with its number where others have one of
// the same name, each at its machine.
func (s *session) name(n int) string {
	dir := s.states[n].Dir
	for i, x := range s.states {
		if i != n && x.Dir == dir {
			return fmt.Sprintf("%s (node %d)", dir, n)
		}
	}
	return dir
}

func (s *session) storing() time.Duration { return storing * s.Timeout }

// here calls f for all nodes at this rank, on all cores, and returns the first error.
func (s *session) here(f func(i int, n *node) error) error {
	errs := make([]error, len(s.nodes))
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, n := range s.nodes {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[i] = f(i, n)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange gives what every node has to say to all of them, in order.
func exchange[T any](ctx context.Context, s *session, mine []T) ([]T, error) {
	all, err := volley.ExchangeValues(ctx, s.t, mine, s.storing())
	return slices.Concat(all...), err
}

// together returns when all ranks have come to it.
func (s *session) together(ctx context.Context) error {
	_, err := volley.Exchange(ctx, s.t, nil, s.storing())
	return err
}

// alike returns an error that all ranks find in what they know of each other, once all have
// come to it: each is to return its own, and not that another has stopped.
func (s *session) alike(ctx context.Context, err error) error {
	s.together(ctx)
	return err
}

// run calls f, and tells the other ranks of its error.
func run[T any](ctx context.Context, t transport.Transport, f func() (T, error)) (T, error) {
	x, err := f()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.As(err, new(*transport.AbortError)) {
		t.Abort(err)
	}
	return x, err
}

// resolve returns the path of a directory without symbolic links.
func resolve(dir string, made bool) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !made:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", inputf("%s: no such directory", dir)
	case err != nil:
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", inputf("%s is no directory: a node is one", dir)
	}
	return real, nil
}

// apart returns an error where a directory is, or lies in, another.
func apart(nodes []*node) error {
	for i, a := range nodes {
		for j, b := range nodes {
			switch rel, err := filepath.Rel(a.root, b.root); {
			case i == j || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)):
			case rel == ".":
				return inputf("%s and %s are one directory: every node has its own", a.dir, b.dir)
			default:
				return inputf("%s lies in %s: nodes have to lie apart", b.dir, a.dir)
			}
		}
	}
	return nil
}
