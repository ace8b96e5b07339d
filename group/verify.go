package group

import (
	"context"
	"slices"
	"time"

	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/snapshot"
	"volley/group/internal/store"
	"volley/group/internal/survey"
)

// A NodeReport says how a node is.
type NodeReport struct {
	Node     int       `json:"node"`
	Dir      string    `json:"dir"`
	Status   string    `json:"status"`
	Findings []Finding `json:"findings,omitempty"`

	Recovered *Recovered `json:"recovered,omitempty"` // by Recover; nil: nothing
	Busy      *Holder    `json:"busy,omitempty"`      // by Status: who writes to it; nil: nobody

	why string // it cannot be read
}

// A VerifyReport says how the nodes of a group are.
type VerifyReport struct {
	Step       *int64       `json:"step,omitempty"` // of the snapshot
	Protected  bool         `json:"protected"`
	Generation int64        `json:"generation"`
	Nodes      []NodeReport `json:"nodes"`
	Tolerate   int          `json:"tolerate"`
	MayLose    int          `json:"may_lose"`          // more nodes, whichever they are, so that all of theirs comes back
	Risks      []Risk       `json:"at_risk,omitempty"` // what would not where one more is lost
	Since      time.Time    `json:"since,omitzero"`    // when the generation came into force at the first node that has it
	Layout     string       `json:"layout,omitempty"`
	Digest     string       `json:"digest,omitempty"` // that data and parity were compared by
	Whole      bool         `json:"whole"`            // all of it, as it was protected
	Notes      []string     `json:"notes,omitempty"`
	Seconds    float64      `json:"seconds"`
}

// Verify compares the data, parity and manifests of all nodes with the digests in the manifest. The report says what is
// found; that is no error.
func (g *Group) Verify(ctx context.Context) (*VerifyReport, error) {
	return g.examine(ctx, "verify", false)
}

// Status is Verify at a glance, by names, lengths, times and modes: it reads no file and no parity. Where another run
// writes to a node, it does not wait: the report says who that is.
func (g *Group) Status(ctx context.Context) (*VerifyReport, error) {
	return g.examine(ctx, "status", true)
}

func (g *Group) examine(ctx context.Context, name string, glance bool) (*VerifyReport, error) {
	v := session.Verb{Name: name, Access: store.Access{Beside: glance}}
	return run(ctx, g, v, func(ctx context.Context, s *session.Session, _ *snapshot.Surroundings) (*VerifyReport, error) {
		for try := 1; ; try++ {
			r, err := examineGroup(ctx, s, glance)
			if err != nil {
				return nil, err
			}
			again, err := s.Again(ctx, v, try)
			if err != nil || !again {
				return r, err
			}
			if err := s.Find(ctx, v); err != nil {
				return nil, err
			}
		}
	})
}

func examineGroup(ctx context.Context, s *session.Session, glance bool) (*VerifyReport, error) {
	start := time.Now()
	r := &VerifyReport{Step: s.Taken, Generation: s.Generation, Notes: s.Notes()}
	if r.Protected = s.Manifest != nil; !r.Protected {
		if !slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Failing == "" && !x.Lost }) && slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Failing != "" }) {
			return nil, s.Alike(ctx, s.Unprotected()) // nobody knows
		}
		for n, x := range s.States {
			status := "not protected"
			switch {
			case x.Failing != "":
				status = Failing
			case x.Lost:
				status = Lost
			}
			r.Nodes = append(r.Nodes, NodeReport{Node: n, Dir: x.Dir, Status: status, Busy: busy(x)})
		}
		r.Notes = append(r.Notes, s.Unprotected().Error())
		return r, nil
	}
	r.Tolerate, r.Layout, r.Digest = s.Manifest.Tolerate, s.Manifest.Layout, s.Manifest.Digest
	conditions, err := survey.ExamineAll(ctx, s, 0, glance, survey.Back{})
	if err != nil {
		return nil, err
	}
	if err := s.Steadied(ctx, conditions); err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, pass.NoteTorn(s, conditions)...)
	r.Whole = true
	if r.MayLose, r.Risks, err = survey.Expose(ctx, s, conditions); err != nil {
		return nil, err
	}
	for n, c := range conditions {
		r.Nodes = append(r.Nodes, NodeReport{Node: n, Dir: s.States[n].Dir, Status: c.Status(), Findings: c.Findings, Busy: busy(s.States[n])})
		if h := s.States[n].Of(s.Current); h != nil && r.Since.IsZero() {
			r.Since = h.Since
		}
		if !c.Whole() {
			r.Whole = false
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// busy returns who writes to a node, or nil.
func busy(x *store.State) *Holder {
	if x.Beside == nil {
		return nil
	}
	return &x.Beside.Holder
}
