package group

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"volley/files"
	"volley/group/internal/content"
	"volley/group/internal/guard"
	"volley/group/internal/pass"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/group/protection"
	"volley/internal/printable"
)

// A NodeReport says how a node is.
type NodeReport struct {
	Node     int                  `json:"node"`
	Dir      string               `json:"dir"`
	Meta     string               `json:"meta,omitempty"` // where its .volley lies, unless in Dir
	Status   string               `json:"status"`
	Findings []protection.Finding `json:"findings,omitempty"`

	Read      *protection.Reading   `json:"read,omitempty"`      // since when all of it was read, by Verify; nil: some of it never was
	Recovered *protection.Recovered `json:"recovered,omitempty"` // by Recover; nil: nothing
	Busy      *files.Holder         `json:"busy,omitempty"`      // by Status: who writes to it; nil: nobody
	Reason    string                `json:"why,omitempty"`       // by Recover: it cannot be read
}

func reportOf(s *session.Session, n int, c *content.Condition) NodeReport {
	x := s.States[n]
	r := NodeReport{Node: n, Dir: x.Dir, Meta: x.Meta, Status: c.Status(), Findings: c.Findings}
	if x.Writer != nil {
		r.Busy = &x.Writer.Holder
	}
	return r
}

// Path returns a path of a finding as people are to read it: below Dir, or a whole one where it lies in Meta.
func (r *NodeReport) Path(p files.Name) string { return store.PathOf("", r.Meta, p) }

// A VerifyReport says how the nodes of a group are.
type VerifyReport struct {
	Step       *int64            `json:"step,omitempty"` // of the snapshot
	Protected  bool              `json:"protected"`
	Generation int64             `json:"generation"`
	Nodes      []NodeReport      `json:"nodes"`
	Tolerate   int               `json:"tolerate"`
	MayLose    int               `json:"may_lose"`          // more nodes, whichever they are, so that all of theirs comes back
	Risks      []protection.Risk `json:"at_risk,omitempty"` // what would not where one more is lost
	Since      time.Time         `json:"since,omitzero"`    // when the generation came into force at the first node that has it
	Digest     string            `json:"digest,omitempty"`  // that data and parity were compared by
	Intact     bool              `json:"whole"`             // all of it, as it was protected; of what was not read, as far as a glance tells
	Part       int               `json:"part,omitempty"`    // of each node that was read, of Parts; 0: all, or nothing by Status
	Parts      int               `json:"parts,omitempty"`
	ReadBytes  int64             `json:"read_bytes,omitempty"` // of all nodes
	Notes      []string          `json:"notes,omitempty"`
	Seconds    float64           `json:"seconds"`

	Accidents []protection.Accident `json:"accidents,omitempty"` // what protect would refuse to make permanent
	Losses    []protection.Accident `json:"losses,omitempty"`    // what it would make permanent, and somebody has to know

	Unrecorded bool `json:"unrecorded,omitempty"` // no node has the record of some node: recover brings nothing back
	Beyond     bool `json:"beyond,omitempty"`     // too much is lost, damaged or changed in some blocks: recover brings the rest back
}

// A BrokenError says what is lost or damaged at the nodes of a group, or looks like an accident.
type BrokenError struct {
	Unprotected bool                  // the group is not protected
	Nodes       []string              // else: those that are not whole, and how they are
	Accidents   []protection.Accident // which Recover brings back if it reverts edits
	Comes       bool                  // Recover brings all of it back or, of a group that is not protected, all nodes are there
}

// ExitCode returns 3, that of a result that is not as it should be.
func (e *BrokenError) ExitCode() int { return 3 }

func (e *BrokenError) Error() string {
	if e.Unprotected {
		return "the group is not protected"
	}
	var list []string
	if e.Nodes != nil {
		list = append(list, "not whole: "+printable.List(e.Nodes))
	}
	if e.Accidents != nil {
		list = append(list, protection.AccidentsText(e.Accidents))
	}
	return strings.Join(list, "; ")
}

// Broken returns a [*BrokenError] where something is lost or damaged. What users have changed is not, unless Protect would
// refuse it as an accident.
func (r *VerifyReport) Broken() error {
	e := &BrokenError{Unprotected: !r.Protected, Accidents: r.Accidents, Comes: !r.TooMany() && !r.Unrecorded && !r.Beyond}
	for _, n := range r.Nodes {
		switch n.Status {
		case Intact, Changed:
			continue
		case Lost:
			e.Comes = e.Comes && r.Protected
		case Damaged, Stale:
		case Failing, Unreachable, Foreign: // nothing comes back there
			e.Comes = false
		}
		e.Nodes = append(e.Nodes, fmt.Sprintf("%s (%s)", n.Dir, n.Status))
	}
	if r.Protected && e.Nodes == nil && e.Accidents == nil {
		return nil
	}
	return e
}

// TooMany reports whether more nodes are lost than the group tolerates.
func (r *VerifyReport) TooMany() bool { return r.Protected && r.Lost() > r.Tolerate }

// Lost returns how many nodes are lost.
func (r *VerifyReport) Lost() (n int) {
	for _, x := range r.Nodes {
		if x.Status == Lost {
			n++
		}
	}
	return n
}

// VerifyOptions say what Verify reads of each node: Part, from 1, of so many Parts, and of the other parts what Status
// does. All parts together are everything that Verify reads. Parts is 1,000 at most; 0: Verify reads everything.
type VerifyOptions struct{ Part, Parts int }

// Verify compares the data, parity and manifests of all nodes with the digests in the manifest. The report says what is
// found; that is no error. It notes in the .volley of each node, where it can, that it has read the part.
func (g *Group) Verify(ctx context.Context, o VerifyOptions) (*VerifyReport, error) {
	part := scrub.Part(o)
	if o == (VerifyOptions{}) {
		part = scrub.EntireNode
	}
	if !part.Valid() {
		return nil, Inputf("part %d of %d: want one from 1 to the number of parts, which is %d at most", o.Part, o.Parts, scrub.MostParts)
	}
	return g.examine(ctx, "verify", part)
}

// Status is Verify at a glance, by names, lengths, times and modes: it reads no file and no parity. Where another run
// writes to a node, it does not wait: the report says who that is.
func (g *Group) Status(ctx context.Context) (*VerifyReport, error) {
	return g.examine(ctx, "status", scrub.Part{})
}

func (g *Group) examine(ctx context.Context, name string, part scrub.Part) (*VerifyReport, error) {
	v := session.Verb{Name: name, Args: part, Access: store.Access{Concurrent: part == scrub.Part{}}}
	return run(ctx, g, v, func(ctx context.Context, s *session.Session) (*VerifyReport, error) {
		for try := 1; ; try++ {
			r, err := examineGroup(ctx, s, part)
			if err != nil {
				return nil, err
			}
			again, err := s.Again(ctx, try)
			if err != nil || !again {
				return r, err
			}
			if err := s.Find(ctx); err != nil {
				return nil, err
			}
		}
	})
}

// examineGroup reads a part of the nodes: all, or nothing.
func examineGroup(ctx context.Context, s *session.Session, part scrub.Part) (*VerifyReport, error) {
	start := time.Now()
	r := &VerifyReport{Step: s.Taken, Protected: s.Manifest != nil, Generation: s.Generation, Notes: s.Notes()}
	if !r.Protected {
		return r, r.noteUnprotected(ctx, s)
	}
	r.Tolerate, r.Digest = s.Manifest.Tolerate, s.Manifest.Digest
	if part != scrub.EntireNode {
		r.Part, r.Parts = part.Part, part.Parts
	}
	conditions, err := survey.ExamineAll(ctx, s, 0, part, protection.Edits{})
	if err == nil {
		err = s.Steadied(ctx, conditions)
	}
	if err != nil {
		return nil, err
	}
	read, err := scrub.Note(ctx, s, part, start, conditions)
	if err != nil {
		return nil, err
	}
	r.Intact = !slices.ContainsFunc(conditions, func(c *content.Condition) bool { return !c.Intact() }) // as all ranks find
	r.Notes = slices.Concat(r.Notes, pass.NoteTorn(s, conditions))
	if r.MayLose, r.Risks, err = survey.Expose(ctx, s, conditions); err != nil {
		return nil, err
	}
	if !r.Intact {
		if r.Accidents, r.Losses, err = guard.FromConditions(ctx, s, conditions); err != nil {
			return nil, err
		}
	}
	if err := survey.Unrecorded(s); err != nil {
		r.Unrecorded = true
		r.Notes = append(r.Notes, err.Error())
	} else if !r.Intact && survey.Recoverable(s, conditions) == nil && !slices.ContainsFunc(conditions, func(c *content.Condition) bool { return c.Failing != "" }) {
		_, beyond, err := survey.PlanRepairs(ctx, s, conditions, true)
		if err != nil {
			return nil, s.SharedError(ctx, err)
		}
		r.Beyond = len(beyond) > 0
	}
	for n, c := range conditions {
		report := reportOf(s, n, c)
		report.Read = read[n].Last
		r.Nodes = append(r.Nodes, report)
		r.ReadBytes += read[n].Bytes
		if h := s.States[n].Holding(s.Current); h != nil && r.Since.IsZero() {
			r.Since = h.Since
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// noteUnprotected says how nodes are that are not protected. The error is that of nodes of which nobody can tell.
func (r *VerifyReport) noteUnprotected(ctx context.Context, s *session.Session) error {
	present, failing := false, false
	for n, x := range s.States {
		report := reportOf(s, n, &content.Condition{Lost: x.Lost, Failing: x.Failing, Unreachable: x.Unreachable})
		if failing = failing || x.Failing != ""; x.Failing == "" && !x.Lost {
			present, report.Status = true, "not protected"
		}
		r.Nodes = append(r.Nodes, report)
	}
	if failing && !present {
		return s.SharedError(ctx, s.Unprotected())
	}
	r.Notes = append(r.Notes, s.WhyUnprotected())
	return nil
}
