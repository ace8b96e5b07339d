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

// CheckDomains notes where several nodes are on one host or one disk. Where all nodes are on one host, that is meant, and
// disks alone count. A host is called by all names that it has, a disk as its host calls it.
func CheckDomains(locations []Location, tolerate int) (notes []string) {
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
		notes = Share("host", machines, len(locations), tolerate)
		disks = slices.DeleteFunc(disks, func(d *Domain) bool { // what has been said of the host
			return len(d.Nodes) > 1 && slices.ContainsFunc(machines, func(m *Domain) bool { return slices.Equal(m.Nodes, d.Nodes) })
		})
	}
	return append(notes, Share("disk", disks, len(locations), tolerate)...)
}

// Share returns a note on nodes that share domains of a kind; none where they do not.
func Share(kind string, list []*Domain, nodes, tolerate int) []string {
	var shared []string
	for _, d := range list {
		switch name := strings.Join(d.Names, ", "); {
		case len(d.Nodes) == nodes:
			return []string{fmt.Sprintf("all nodes are on one %s, and lost with it: give each node a %s of its own", kind, kind)}
		case len(d.Nodes) > tolerate && len(d.Nodes) > 1:
			shared = append(shared, fmt.Sprintf("%s are on one %s (%s), and more than may be lost", numbered(d.Nodes), kind, name))
		case len(d.Nodes) > 1:
			shared = append(shared, fmt.Sprintf("%s are on one %s (%s)", numbered(d.Nodes), kind, name))
		}
	}
	if shared == nil {
		return nil
	}
	return []string{pass.JoinFirst(shared[:min(len(shared), pass.MostNamed)], "; ", len(shared))}
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
