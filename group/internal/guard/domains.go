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

// HostNames returns names of hosts, with more of what tells them apart where two are called the same.
func HostNames(locations []Location) (names []string) {
	first, shared := map[string]disk.HostID{}, map[string]bool{}
	for _, x := range locations {
		if host, known := first[x.Host.Name]; !known {
			first[x.Host.Name] = x.Host
		} else if host != x.Host {
			shared[x.Host.Name] = true
		}
	}
	for _, x := range locations {
		name := x.Host.Name
		if shared[name] {
			name += fmt.Sprintf(" (boot %s)", x.Host.Boot)
		}
		names = append(names, name)
	}
	return names
}

// machine tells machines apart: two containers of one have names of their own, and the same boot ID.
func machine(h disk.HostID) string { return cmp.Or(h.Boot, h.Name) }

// failureDomains says which nodes are lost at a time: those of each machine, and those of each disk. Domains with most
// nodes come first. A machine is called by all names that it has, a disk as its machine calls it.
func failureDomains(locations []Location) (machines, disks []*Domain) {
	names := HostNames(locations)
	machines = DomainsOf(len(locations), func(n int) (string, string, bool) {
		key := machine(locations[n].Host)
		return key, names[n], key != ""
	})
	disks = DomainsOf(len(locations), func(n int) ([2]string, string, bool) {
		return [2]string{machine(locations[n].Host), locations[n].Disk}, locations[n].Disk, locations[n].Disk != ""
	})
	return machines, disks
}

// A Domain is what is lost at a time, and takes nodes with it.
type Domain struct {
	Names []string // of its nodes' places, each once
	Nodes []int
}

// DomainsOf puts nodes with the same key together, those of most nodes first. Nodes without a key are left out.
func DomainsOf[K comparable](nodes int, key func(n int) (key K, name string, ok bool)) (list []*Domain) {
	byKey := map[K]*Domain{}
	for n := range nodes {
		key, name, ok := key(n)
		if !ok {
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

// A sharing says which nodes are on one host or one disk.
type sharing struct {
	Hosts, Devices []string // by node
	Notes          []string
	Crowded        []string // notes of hosts and disks that take more nodes than may be lost
}

// CheckDomains notes where several nodes are on one host or one disk, and what may be lost then. Where all nodes are on
// one host, that is meant, and disks alone count.
func CheckDomains(locations []Location, tolerate int) (r sharing) {
	r.Hosts = HostNames(locations)
	for _, x := range locations {
		r.Devices = append(r.Devices, x.Disk)
	}
	note := func(kind string, list []*Domain) {
		text, crowded := Share(kind, list, len(locations), tolerate)
		if text != "" {
			r.Notes = append(r.Notes, text)
		}
		if crowded {
			r.Crowded = append(r.Crowded, text)
		}
	}
	machines, disks := failureDomains(locations)
	if len(machines) > 1 {
		note("host", machines)
		disks = slices.DeleteFunc(disks, func(d *Domain) bool { // what has been said of the host
			return len(d.Nodes) > 1 && slices.ContainsFunc(machines, func(m *Domain) bool { return slices.Equal(m.Nodes, d.Nodes) })
		})
	}
	note("disk", disks)
	return r
}

// allOn says of a group that all of it is lost at a time.
func allOn(kind string) string {
	return fmt.Sprintf("all nodes are on one %s, and lost with it: give each node a %s of its own", kind, kind)
}

// Share says which nodes share domains of a kind, and what may be lost then; "": none do. It reports whether one of them
// takes more nodes than may be lost.
func Share(kind string, list []*Domain, nodes, tolerate int) (text string, crowded bool) {
	if len(list) == 0 || len(list[0].Nodes) < 2 {
		return "", false
	}
	if len(list[0].Nodes) == nodes {
		return allOn(kind), true
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
	losable := fmt.Sprintf("any %d %ss", tolerated, kind)
	if tolerated == 1 {
		losable = fmt.Sprintf("any 1 %s", kind)
	}
	switch {
	case fatal > 0 && tolerated == 0:
		losable = "no " + kind
	case fatal == 1:
		losable += " but this one"
	case fatal > 1:
		losable += " but these"
	}
	if fatal == 1 {
		text += fmt.Sprintf(": losing it loses %d nodes of R = %d", len(list[0].Nodes), tolerate)
	} else if fatal > 1 {
		text += fmt.Sprintf(": losing one loses up to %d nodes of R = %d", len(list[0].Nodes), tolerate)
	}
	noun := "nodes"
	if tolerate == 1 {
		noun = "node"
	}
	return fmt.Sprintf("%s. What may be lost: any %d %s, %s", text, tolerate, noun, losable), fatal > 0
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
