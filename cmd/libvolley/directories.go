//go:build mpi

package main

// #include "volley.h"
import "C"

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/transport/mpi"
)

// A node is what C arguments say of the directory of this process's node.
type node struct {
	*operation
	verb    string
	dir     string
	options protection.Settings
	set     setOptions
}

// A verb works on the group of a node, which is a part of all nodes.
type verb func(context.Context, *group.Group, protection.SetIndex) (found, error)

// found is what a verb has found, the same at all nodes.
type found struct {
	step    *int64 // that it has taken, if any
	verdict error
}

// nodeOf returns the operation of a verb.
func nodeOf(name string, path *C.char, o *C.volley_group_options) *node {
	n := &node{verb: name, dir: C.GoString(path), set: setOptions{size: int(o.set_size), domain: C.GoString(o.domain)}}
	options, err := groupOptions(o)
	n.options = options
	if n.dir == "" {
		err = exit.Usagef("path: none was given: each process names the directory of its node")
	}
	if err == nil {
		err = n.check(o)
	}
	n.operation = operate(o, err)
	if step := o.step; step != nil {
		n.options.Roots, n.options.Step = true, int64(*step)
	}
	return n
}

// check refuses options that do not go together.
func (n *node) check(o *C.volley_group_options) (err error) {
	switch {
	case o.step != nil && *o.step < C.VOLLEY_LATEST:
		return exit.Usagef("step: %d: want the number of a snapshot, or VOLLEY_LATEST", int64(*o.step))
	case o.retain < 0:
		return exit.Usagef("retain: %d snapshots: want 0 or more; 0: all stay", int(o.retain))
	case o.retain > 0 && o.step == nil:
		return exit.Usagef("retain: %d: it is for snapshots: set step, and path to their root", int(o.retain))
	case o.step != nil && o.set_size != 0:
		return exit.Usagef("set_size: snapshots are of one group: leave step NULL, and give path of one snapshot")
	}
	return n.set.check()
}

// runOn sets what is run: a verb on this process's node, alone or in its set.
func (n *node) runOn(step *C.longlong, run verb) *operation {
	var result found
	n.operation.run = func(ctx context.Context, e *mpi.Endpoint) error {
		n.options.Progress = n.progress
		return n.inSet(ctx, e, func(ctx context.Context, t *mpi.Endpoint, part protection.SetIndex) (err error) {
			result, err = run(ctx, group.Join(t, []string{n.dir}, n.options), part)
			n.verdict = result.verdict
			return err
		})
	}
	n.operation.tell = func() {
		if step != nil && result.step != nil {
			*step = C.longlong(*result.step)
		}
	}
	return n.operation
}

//export volleyProtect
func volleyProtect(comm C.MPI_Fint, path *C.char, tolerate C.int, o *C.volley_group_options, begin C.int, request *C.volley_request) C.int {
	n := nodeOf("protect", path, o)
	p := group.ProtectOptions{Tolerate: int(tolerate), Digest: C.GoString(o.digest), Retain: int(o.retain)}
	return n.runOn(o.step, func(ctx context.Context, g *group.Group, part protection.SetIndex) (found, error) {
		if n.options.Roots && n.options.Step != group.Latest { // all have come: their files are written
			if err := group.CompleteSnapshot(n.dir, n.options.Step); err != nil {
				return found{}, err
			}
		}
		p.Part = part
		r, err := g.Protect(ctx, p)
		if err != nil {
			return found{}, err
		}
		return found{step: r.Step}, nil
	}).start(comm, begin, request)
}

//export volleyRecover
func volleyRecover(comm C.MPI_Fint, path *C.char, o *C.volley_group_options, begin C.int, request *C.volley_request) C.int {
	return nodeOf("recover", path, o).runOn(o.step, func(ctx context.Context, g *group.Group, _ protection.SetIndex) (found, error) {
		r, err := g.Recover(ctx, group.RecoverOptions{})
		if err != nil {
			return found{}, err
		}
		return found{r.Step, r.Incomplete()}, nil
	}).start(comm, begin, request)
}

//export volleyUnprotect
func volleyUnprotect(comm C.MPI_Fint, path *C.char, o *C.volley_group_options) C.int {
	n := nodeOf("unprotect", path, o)
	if o.step != nil && n.wrong == nil {
		n.wrong = exit.Usagef("step: the protection of one snapshot is ended: leave step NULL, and give path of it")
	}
	return n.runOn(nil, func(ctx context.Context, g *group.Group, _ protection.SetIndex) (found, error) {
		_, err := g.Unprotect(ctx, group.UnprotectOptions{})
		if errors.As(err, new(*group.RemainsError)) { // it has ended, but at nodes that cannot be read
			return found{verdict: err}, nil
		}
		return found{}, err
	}).perform(comm)
}

//export volleyExamine
func volleyExamine(comm C.MPI_Fint, path *C.char, reads C.int, o *C.volley_group_options, report *C.volley_report) C.int {
	name := "status"
	if reads != 0 {
		name = "verify"
	}
	n := nodeOf(name, path, o)
	if report == nil && n.wrong == nil {
		n.wrong = isNull("report")
	}
	var r *group.VerifyReport
	var set protection.SetIndex
	op := n.runOn(o.step, func(ctx context.Context, g *group.Group, part protection.SetIndex) (_ found, err error) {
		examine := g.Status
		if reads != 0 {
			examine = func(ctx context.Context) (*group.VerifyReport, error) { return g.Verify(ctx, group.VerifyOptions{}) }
		}
		if r, err = examine(ctx); err != nil {
			return found{}, err
		}
		set = part
		return found{r.Step, r.Broken()}, nil
	})
	code := op.perform(comm)
	if report != nil {
		*report = C.volley_report{step: C.VOLLEY_LATEST}
		if r != nil {
			*report = reported(r, set)
		}
	}
	return code
}

// reported returns a report as C has it.
func reported(r *group.VerifyReport, part protection.SetIndex) C.volley_report {
	flag := func(set bool) C.int {
		if set {
			return 1
		}
		return 0
	}
	seconds := func(t time.Time) C.longlong {
		if t.IsZero() {
			return 0
		}
		return C.longlong(t.Unix())
	}
	c := C.volley_report{
		is_protected: flag(r.Protected), whole: flag(r.Intact), recoverable: flag(r.Protected), nodes: C.int(len(r.Nodes)), tolerate: C.int(r.Tolerate),
		lost: C.int(r.Lost()), may_lose: C.int(r.MayLose), set: C.int(part.Set), sets: C.int(max(part.Sets, 1)),
		generation: C.longlong(r.Generation), step: C.VOLLEY_LATEST, since: seconds(r.Since),
	}
	if r.Step != nil {
		c.step = C.longlong(*r.Step)
	}
	if broken := new(group.BrokenError); errors.As(r.Broken(), &broken) {
		c.broken, c.recoverable = C.int(len(broken.Nodes)), flag(r.Protected && broken.Comes)
	}
	for _, x := range r.Risks {
		c.files_at_risk += C.longlong(x.Files)
	}
	return c
}

//export volleyStepPath
func volleyStepPath(root *C.char, step C.longlong, path *C.char, bytes C.size_t) C.int {
	if path == nil {
		return result(isNull("path"))
	}
	dir, err := group.DraftSnapshot(C.GoString(root), int64(step))
	if err != nil {
		return result(err)
	}
	if uint64(len(dir)) >= uint64(bytes) {
		return result(exit.Usagef("bytes: %d: %s takes %d", uint64(bytes), dir, len(dir)+1))
	}
	room := unsafe.Slice((*byte)(unsafe.Pointer(path)), len(dir)+1)
	room[copy(room, dir)] = 0
	return result(nil)
}
