package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
)

// choose decides which snapshot a verb takes, of all of them, the newest first. It passes over those that for certain do
// not come back, and no others: what cannot be told of a newer one selects no older one. Verbs that only look pass over
// those, too, that are not protected yet, or are just being protected.
func choose(list []Snapshot, looks bool) (int, error) {
	var reasons []string
	for i, x := range list {
		switch x.State {
		case InForce, Recoverable:
			return i, nil
		case Unprotected:
			if !looks {
				return i, nil
			}
			reasons = append(reasons, session.StepName(x.Step)+": it is not protected")
			continue
		case Busy:
			if !looks {
				return 0, x.Err
			}
		case Unclear:
			return 0, &NotLostError{x.Step, x.Err}
		}
		reasons = append(reasons, session.StepName(x.Step)+": "+x.Reason)
	}
	if list == nil {
		reasons = []string{"no root has a directory step-N (N a number without leading zeros)"}
	}
	err := store.Inputf("no snapshot can be recovered: %s", strings.Join(reasons, "; "))
	if slices.ContainsFunc(list, func(x Snapshot) bool { return x.Nodes > 0 || x.State == Busy }) {
		return 0, err
	}
	return 0, &protection.NoneError{Err: err} // nobody has a manifest
}

// A NotLostError says that no older snapshot is taken in the place of one that may come back.
type NotLostError struct {
	Step int64
	Err  error // why it does not come back now
}

// Unwrap returns why it does not come back now.
func (e *NotLostError) Unwrap() error { return e.Err }

func (e *NotLostError) Error() string {
	return fmt.Sprintf("%s: %v. It may not be lost, so no older snapshot takes its place: mend that, and run again", session.StepName(e.Step), e.Err)
}

// pickSnapshot settles which snapshot the directories of this run are. Where it was to be found, it returns the others.
func pickSnapshot(ctx context.Context, s *session.Session) (found *surroundings, err error) {
	step := s.Step
	switch {
	case step < session.Latest:
		err = s.SharedError(ctx, store.Inputf("there is no step %d: a step is 0 or more", step))
	case s.Verb.Needs:
		step, err = commonStep(ctx, s)
	default:
		if found, err = lookAround(ctx, s, step); err == nil {
			step, err = found.take(ctx, s)
		}
	}
	if err != nil {
		return found, err
	}
	for i, n := range s.Nodes {
		s.Nodes[i] = n.Sub(session.StepName(step))
		if found != nil && found.mine[i][0].opened[step] != nil {
			s.Nodes[i] = found.mine[i][0].opened[step]
		}
	}
	s.Taken = &step
	return found, nil
}

// take returns the snapshot that a verb takes, the one that it names or the latest, whose nodes are those of this run.
func (f *surroundings) take(ctx context.Context, s *session.Session) (int64, error) {
	i, err := 0, error(nil)
	if s.Step == session.Latest {
		i, err = choose(f.List, s.Verb.Passed == nil)
	} else if f.List == nil {
		err = store.Inputf("%s is at no node that can be read", session.StepName(s.Step))
	}
	if err != nil {
		return 0, f.refuse(ctx, s, err)
	}
	x := &f.List[i]
	if x.stale != nil {
		_, err = f.renameSnapshots(ctx, s, nil, Latest, new([]string))
	}
	return x.Step, cmp.Or(err, x.seatsError(s))
}

// refuse returns the error where no snapshot is taken. Where nothing was ever protected, the job that begins may write each
// step: what is there is renamed.
func (f *surroundings) refuse(ctx context.Context, s *session.Session, err error) error {
	absent := new(protection.NoneError)
	failing := slices.IndexFunc(f.Roots, func(x *rootState) bool { return x.Failing != "" })
	switch {
	case !errors.As(err, &absent):
	case failing >= 0:
		err = fmt.Errorf("%w; %s cannot be read: %s", absent.Err, f.Roots[failing].Dir, f.Roots[failing].Failing)
	default:
		if _, failed := f.renameSnapshots(ctx, s, stepsOf(f.List), Latest, new([]string)); failed != nil {
			return failed
		}
	}
	return s.SharedError(ctx, err)
}

// commonStep returns the step asked for, or the newest, that every root has a directory of.
func commonStep(ctx context.Context, s *session.Session) (int64, error) {
	roots, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) ([]*rootState, error) {
		return lookAtRoot(s, n)
	})
	if err != nil {
		return 0, err
	}
	var texts []string
	count := map[int64]int{}
	newest := session.Latest
	for _, list := range roots {
		x := list[0]
		var names []string
		for _, step := range x.steps() {
			names = append(names, session.StepName(step))
			if count[step]++; count[step] == s.K && (s.Step == session.Latest || s.Step == step) {
				newest = max(newest, step)
			}
		}
		texts = append(texts, fmt.Sprintf("%s has %s", x.Dir, cmp.Or(strings.Join(names, ", "), x.Failing, "none")))
	}
	if newest >= 0 {
		return newest, nil
	}
	subject := "no step-N (N a number without leading zeros) is"
	if s.Step != session.Latest {
		subject = session.StepName(s.Step) + " is not"
	}
	return 0, s.SharedError(ctx, store.Inputf("%s at every node: %s. A node that has lost its snapshots gets the latest back by recover", subject, strings.Join(texts, "; ")))
}

// renameNewer renames snapshots newer than the recovered one, so that no mixture of old and new files is protected: those that
// the decision for that one has passed over, which are lost.
func (g *Group) renameNewer(ctx context.Context, v session.Verb, r *RecoverReport) (*RecoverReport, error) {
	return meet(ctx, g, func(s *session.Session) (*RecoverReport, error) {
		err := s.Meet(ctx, len(g.dirs), v)
		if err == nil {
			_, err = s.Place(g.dirs)
		}
		if err != nil {
			return nil, err
		}
		found, err := lookAround(ctx, s, Latest)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		i, err := choose(found.List, false)
		if err == nil && found.List[i].Step != *r.Step {
			err = fmt.Errorf("%s came back, and %s is there by now: run again", session.StepName(*r.Step), session.StepName(found.List[i].Step))
		}
		if err != nil {
			return nil, s.SharedError(ctx, err)
		}
		for _, x := range found.List[:i] {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is passed over: %s", session.StepName(x.Step), x.Reason))
		}
		_, err = found.renameSnapshots(ctx, s, stepsOf(found.List[:i]), Latest, &r.Notes)
		return r, err
	})
}

func stepsOf(list []Snapshot) (steps []int64) {
	for _, x := range list {
		steps = append(steps, x.Step)
	}
	return steps
}
