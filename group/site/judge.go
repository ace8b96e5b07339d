package site

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"volley/group/internal/guard"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/printable"
)

// A Placement is a node of a group as whoever judges knows it.
type Placement struct {
	Name        string // of its directory
	Host        string // what the user calls its host
	*Inspection        // nil: its host does not answer
}

// Options say what is to be protected. Zero is as in an earlier run, or as Protect has it.
type Options struct {
	Tolerate int
	Size     int // of a set at most; 0: all nodes are one group
}

// A Judgement says what the nodes of a group come to.
type Judgement struct {
	Parity   int64    `json:"parity_bytes"`   // that each node is to have room for, about; 0: not known
	Recovery int64    `json:"recovery_bytes"` // that an empty directory takes which becomes the largest node
	Roomy    []string `json:"room_for_recovery,omitempty"`
	Notes    []string `json:"notes,omitempty"` // of what works, and may not be meant
}

// Judge compares the nodes, and adds to each the faults that it has beside others. The error says that there can be no
// such group.
func Judge(members []Placement, o Options) (*Judgement, error) {
	j := new(Judgement)
	var mostBytes int64
	seen, mounted, files := 0, 0, false
	for _, x := range members {
		if x.Inspection == nil {
			continue
		}
		mostBytes = max(mostBytes, x.Bytes)
		if x.Disk != "" {
			seen++
		}
		if x.Disk != "" && !x.OnRoot {
			mounted++
		}
		if x.AtMost {
			j.Notes = append(j.Notes, fmt.Sprintf("%s has many files, which were not all counted: at most %s", x.Name, size(x.Bytes)))
		}
		if x.Protected {
			files = true
			o.Tolerate = cmp.Or(o.Tolerate, x.Tolerate)
		}
	}
	sets := 1
	if o.Size > 0 {
		sets = (len(members) + o.Size - 1) / o.Size
	}
	for _, x := range members {
		if x.Inspection != nil && x.OnRoot && 2*mounted > seen && x.Bytes == 0 && !x.Protected {
			x.Faults = append(x.Faults, Fault{NoMount, "it is empty and lies on the file system of /, and most other nodes lie on mounts: what is to be mounted there is not"})
		}
	}
	j.noteShared(members, o.Tolerate, sets)
	k := len(members) / sets // of the smallest set, which has most parity
	shape, err := store.ShapeOf(k, cmp.Or(o.Tolerate, 1))
	if err != nil {
		return nil, &protection.RefusedError{Err: err}
	}
	if o.Tolerate == 0 {
		j.Notes = append(j.Notes, "room for parity is not estimated: nothing says how many nodes may be lost")
		return j, nil
	}
	j.Parity = int64(shape.Parity) * store.ChunkBytes(mostBytes, shape.Data)
	j.Recovery = mostBytes + j.Parity
	for _, x := range members {
		if x.Inspection == nil || x.Free == nil || x.hasFault(NoMount) {
			continue
		}
		sharers := x.sharers(members)
		free, needs := *x.Free, float64(sharers)*float64(j.Parity)
		subject := "its parity takes"
		if sharers > 1 {
			subject = fmt.Sprintf("the parity of %d nodes there takes", sharers)
		}
		if files && !x.Protected && x.Bytes == 0 { // it is lost
			needs += float64(mostBytes)
			subject += ", with a recovery of the largest node,"
		}
		if float64(free) < needs {
			x.Faults = append(x.Faults, Fault{NoRoom, fmt.Sprintf("%s are free, and %s %s", size(free), subject, size(int64(min(needs, math.MaxInt64/2))))})
		} else if free >= j.Recovery {
			j.Roomy = append(j.Roomy, x.Name)
		}
	}
	return j, nil
}

func size(n int64) string { return humanize.IBytes(uint64(n)) }

// sharers returns how many nodes have their parity where a node has it, itself among them.
func (x *Placement) sharers(members []Placement) (n int) {
	for _, y := range members {
		if y.Inspection != nil && (y.Inspection == x.Inspection || x.Room != "" && y.Room == x.Room && cmp.Or(y.Machine, y.Host) == cmp.Or(x.Machine, x.Host)) {
			n++
		}
	}
	return n
}

func (n *Inspection) hasFault(kind FaultKind) bool {
	return slices.ContainsFunc(n.Faults, func(f Fault) bool { return f.Kind == kind })
}

// noteShared notes which nodes are lost together: those of a disk, and those of a machine where more are there than may be
// lost, unless it is the one host of all.
func (j *Judgement) noteShared(members []Placement, tolerate, sets int) {
	locations := make([]guard.Location, len(members))
	for i, x := range members {
		if locations[i].Host.Name = x.Host; x.Inspection != nil {
			locations[i].Host.Boot, locations[i].Disk = x.Machine, x.Disk
		}
	}
	named := func(d *guard.Domain) (names []string) {
		for _, i := range d.Nodes {
			names = append(names, members[i].Name)
		}
		return names
	}
	machines, disks := guard.FailureDomains(locations)
	for _, m := range machines {
		if len(m.Names) > 1 {
			j.Notes = append(j.Notes, fmt.Sprintf("%s are one machine", printable.List(m.Names)))
		}
	}
	for _, d := range disks {
		if len(d.Nodes) > 1 {
			text := guard.AllOn("disk")
			if len(d.Nodes) < len(members) {
				text = fmt.Sprintf("%s are on one disk (%s), and lost together", printable.List(named(d)), d.Names[0])
			}
			j.Notes = append(j.Notes, text)
		}
	}
	for _, m := range machines {
		if len(m.Nodes) == len(members) && len(m.Names) == 1 { // which is meant, as protect has it
			continue
		}
		oneDisk := slices.ContainsFunc(disks, func(d *guard.Domain) bool { return slices.Equal(d.Nodes, m.Nodes) })
		if tolerate > 0 && len(m.Nodes) > tolerate*sets && !oneDisk {
			j.Notes = append(j.Notes, fmt.Sprintf("%s are lost with %s, and the group tolerates the loss of %d", printable.Count(len(m.Nodes), "node"), printable.List(m.Names), tolerate*sets))
		}
	}
}
