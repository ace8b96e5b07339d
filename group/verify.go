package group

import (
	"context"
	"fmt"
	"io"
	"time"

	"volley/transport"
	"volley/verify"
)

// VerifyOptions say how to verify.
type VerifyOptions struct {
	Options
	Quick  bool // by random combinations of all data, instead of digests
	Glance bool // by names, lengths and times alone: no file and no parity is read
}

// A NodeReport says how a node is.
type NodeReport struct {
	Node     int       `json:"node"`
	Dir      string    `json:"dir"`
	Status   string    `json:"status"`
	Findings []Finding `json:"findings,omitempty"`
}

// A VerifyReport says how the nodes of a group are.
type VerifyReport struct {
	Protected  bool         `json:"protected"`
	Generation int64        `json:"generation"`
	Nodes      []NodeReport `json:"nodes"`
	Tolerate   int          `json:"tolerate"`
	MayLose    int          `json:"may_lose"`       // more nodes, at least; those that are not whole count as lost
	Since      time.Time    `json:"since,omitzero"` // when the generation came into force at the first node that has it
	Layout     string       `json:"layout,omitempty"`
	Digest     string       `json:"digest,omitempty"` // that data and parity were compared by; with Quick, where there is damage
	Whole      bool         `json:"whole"`            // all of it, as it was protected
	Quick      bool         `json:"quick"`
	MovedBytes int64        `json:"moved_bytes,omitempty"` // by each node, with Quick
	Notes      []string     `json:"notes,omitempty"`
	Seconds    float64      `json:"seconds"`
}

// Verify compares the data, parity and manifests of all nodes with the digests in the
// manifest. Quick compares names, lengths, times and modes, and then random combinations
// of all data and parity, which takes no digests and finds any damage but with a probability
// of about 2^-32; where there is some, digests say where. Glance compares names, lengths, times and
// modes only. The report says what is found; that is no error.
func Verify(ctx context.Context, t transport.Transport, dirs []string, o VerifyOptions) (*VerifyReport, error) {
	name := "verify"
	if o.Glance {
		name = "status" // as the command line calls it, where it names who uses a node
	}
	return run(ctx, t, dirs, o.Options, verb{name: name, args: fmt.Sprintf("quick %v, glance %v", o.Quick, o.Glance)}, func(ctx context.Context, s *session) (*VerifyReport, error) {
		return verifyGroup(ctx, s, o)
	})
}

func verifyGroup(ctx context.Context, s *session, o VerifyOptions) (*VerifyReport, error) {
	start := time.Now()
	r := &VerifyReport{Quick: o.Quick, Generation: s.generation, Notes: s.notes()}
	if r.Protected = s.manifest != nil; !r.Protected {
		for n, x := range s.states {
			status := "not protected"
			switch {
			case x.Failing != "":
				status = Failing
			case x.Lost:
				status = Lost
			}
			r.Nodes = append(r.Nodes, NodeReport{Node: n, Dir: x.Dir, Status: status})
		}
		r.Notes = append(r.Notes, s.unprotected().Error())
		return r, nil
	}
	r.Tolerate, r.Layout, r.Digest = s.manifest.Tolerate, s.manifest.Layout, s.manifest.Digest
	conditions, err := s.examineAll(ctx, o.Quick || o.Glance, false)
	if err != nil {
		return nil, err
	}
	r.Whole = true
	r.MayLose = r.Tolerate
	for n, c := range conditions {
		r.Nodes = append(r.Nodes, NodeReport{n, s.states[n].Dir, c.status(), c.Findings})
		if h := s.states[n].of(s.current); h != nil && r.Since.IsZero() {
			r.Since = h.Since
		}
		if !c.whole() {
			r.Whole = false
			r.MayLose = max(0, r.MayLose-1)
		}
	}
	if o.Quick {
		if err := s.quick(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// quick compares random combinations of all chunks.
func (s *session) quick(ctx context.Context, r *VerifyReport) error {
	m := s.manifest
	r.Digest = ""
	c, err := m.code()
	if err != nil {
		return err
	}
	if m.ChunkBytes == 0 {
		return nil
	}
	x := s.newCheck(c, m.ChunkBytes)
	if err := s.each(ctx, func(ctx context.Context, i int, n *node) error { return s.fingerprint(ctx, n, x, i) }); err != nil {
		return err
	}
	folds, err := exchange(ctx, s, x.folds())
	if err != nil {
		return err
	}
	fits, err := x.fits(s, folds)
	if err != nil {
		return err
	}
	r.MovedBytes = int64(len(folds[0]))
	if fits {
		return nil
	}
	r.Whole, r.Digest = false, m.Digest
	conditions, err := s.examineAll(ctx, false, false)
	if err != nil {
		return err
	}
	found := false
	for n, c := range conditions {
		r.Nodes[n].Status, r.Nodes[n].Findings = c.status(), c.Findings
		found = found || !c.whole()
	}
	if !found {
		r.Notes = append(r.Notes, "all digests are right, and data and parity do not fit together: protect again")
	}
	return nil
}

// fingerprint takes the fingerprints of all chunks of a node. What cannot be read is zeros.
func (s *session) fingerprint(ctx context.Context, n *node, x *check, i int) error {
	m := s.manifest
	d := newData(n.dir, s.entries(n.index), true)
	defer d.close()
	parity := io.ReaderAt(&data{}) // zeros
	if f, err := n.openParity(s.generation); err == nil {
		defer f.Close()
		parity = f
	}
	rows := m.allRows()
	each := max(x.block, 64<<10/x.block*x.block)
	take := func(prints *verify.Fingerprints, from io.ReaderAt, chunks int) error {
		buffer, parts := make([]byte, int64(chunks)*each), make([][]byte, chunks)
		for at := int64(0); at < m.ChunkBytes; at += each {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for chunk := range parts {
				parts[chunk] = buffer[int64(chunk)*each:][:min(each, m.ChunkBytes-at)]
				r := blockReader{blocks{m, rows}, from, chunk, chunks}
				if _, err := r.ReadAt(parts[chunk], at); err != nil {
					clear(parts[chunk])
				}
			}
			prints.Add(parts...)
		}
		return nil
	}
	if err := take(x.data[i], d, m.DataChunks); err != nil {
		return err
	}
	return take(x.parity[i], parity, m.ParityChunks)
}
