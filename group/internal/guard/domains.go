package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/internal/disk"
	"volley/internal/printable"
)

// A Location is where a node's directory lies.
type Location struct {
	Host disk.HostID
	Disk string `json:",omitempty"` // at that host: see [disk.Device]; "": not known
}

func Locate(s *session.Session, n *store.Node) (Location, error) {
	info, err := n.Dir.Lstat(".")
	if err != nil {
		return Location{}, err
	}
	return Location{Host: s.Host(), Disk: disk.Device(info)}, nil
}

// machine tells machines apart: two containers of one have names of their own, and the same boot ID.
func machine(h disk.HostID) string { return cmp.Or(h.Boot, h.Name) }

// A Domain is what is lost at a time, and takes nodes with it.
type Domain struct {
	Names []string // of its nodes' places, each once
	Nodes []int
}

// DomainsOf puts nodes with the same key together, those of most nodes first. Nodes whose key is "" are left out.
func DomainsOf(nodes int, keyOf func(n int) (key, name string)) (list []*Domain) {
	byKey := map[string]*Domain{}
	for n := range nodes {
		key, name := keyOf(n)
		if key == "" {
			continue
		}
		d := byKey[key]
		if d == nil {
			d = new(Domain)
			byKey[key], list = d, append(list, d)
		}
		d.Nodes = append(d.Nodes, n)
		if !slices.Contains(d.Names, name) {
			d.Names = append(d.Names, name)
		}
	}
	slices.SortStableFunc(list, func(a, b *Domain) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return list
}

// CheckDomains notes where several nodes are on one host or one disk, and what may be lost then. Where all nodes are on
// one host, that is meant, and disks alone count. A host is called by all names that it has, a disk as its host calls it.
// Of the notes, crowded are those of hosts and disks that take more nodes than may be lost.
func CheckDomains(locations []Location, tolerate int) (notes, crowded []string) {
	note := func(kind string, list []*Domain) {
		text, fatal := Share(kind, list, len(locations), tolerate)
		if text != "" {
			notes = append(notes, text)
		}
		if fatal {
			crowded = append(crowded, text)
		}
	}
	machines := DomainsOf(len(locations), func(n int) (key, name string) {
		host := locations[n].Host
		return machine(host), host.Name
	})
	disks := DomainsOf(len(locations), func(n int) (key, name string) {
		if name = locations[n].Disk; name != "" {
			key = machine(locations[n].Host) + "/" + name
		}
		return key, name
	})
	if len(machines) > 1 {
		note("host", machines)
		disks = slices.DeleteFunc(disks, func(d *Domain) bool { // what has been said of the host
			return len(d.Nodes) > 1 && slices.ContainsFunc(machines, func(m *Domain) bool { return slices.Equal(m.Nodes, d.Nodes) })
		})
	}
	note("disk", disks)
	return notes, crowded
}

// Share says which nodes share domains of a kind, and what may be lost then; "": none do. It reports whether one of them
// takes more nodes than may be lost.
func Share(kind string, list []*Domain, nodes, tolerate int) (text string, crowded bool) {
	if len(list) == 0 || len(list[0].Nodes) < 2 {
		return "", false
	}
	if len(list[0].Nodes) == nodes {
		return fmt.Sprintf("all nodes are on one %s, and lost with it: give each node a %s of its own", kind, kind), true
	}
	var shared []string
	fatal, tolerated, remaining := 0, 0, tolerate
	for _, d := range list {
		count := len(d.Nodes)
		if count > 1 {
			name := ""
			if names := strings.Join(d.Names, ", "); names != "" {
				name = " (" + names + ")"
			}
			shared = append(shared, fmt.Sprintf("%s are on one %s%s", numbered(d.Nodes), kind, name))
		}
		switch {
		case count > tolerate:
			fatal++
		case count <= remaining:
			tolerated++
			remaining -= count
		default: // there is no room for the largest that are left
			remaining = 0
		}
	}
	text = pass.JoinFirst(shared[:min(len(shared), pass.MostNamed)], "; ", len(shared))
	losable := "any " + printable.Count(tolerated, kind)
	switch {
	case fatal > 0 && tolerated == 0:
		losable = "no " + kind
	case fatal == 1:
		losable += " but this one"
	case fatal > 1:
		losable += " but these"
	}
	if fatal > 0 {
		losing := printable.Plural(fatal, "losing it loses", "losing one loses up to")
		text += fmt.Sprintf(": %s %d nodes of R = %d", losing, len(list[0].Nodes), tolerate)
	}
	return fmt.Sprintf("%s. What may be lost: any %s, %s", text, printable.Count(tolerate, "node"), losable), fatal > 0
}

// numbered names nodes by their numbers.
func numbered(nodes []int) string {
	var list []string
	for _, n := range nodes {
		list = append(list, fmt.Sprint(n))
	}
	if len(list) <= pass.MostNamed {
		last := len(list) - 1
		return fmt.Sprintf("nodes %s and %s", strings.Join(list[:last], ", "), list[last])
	}
	return "nodes " + pass.JoinFirst(list[:pass.MostNamed], ", ", len(list))
}
