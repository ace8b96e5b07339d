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

// A CrowdedError says that losing one host or disk loses more nodes than may be lost, where Strict of the options asks
// for that. The protection is in force, unless it was a dry run.
type CrowdedError struct {
	Domains []string // which nodes are where, for people
}

// ExitCode returns 3, that of a result that is not as it should be.
func (e *CrowdedError) ExitCode() int { return 3 }

func (e *CrowdedError) Error() string {
	return "more nodes than may be lost are in one place: " + strings.Join(e.Domains, "; ")
}

// A Location is where a node's directory lies.
type Location struct {
	Host   disk.Host
	Device string `json:",omitempty"` // of its file system at that host, in hexadecimal; "": not known
}

func Locate(s *session.Session, n *store.Node) (Location, error) {
	info, err := n.Dir.Lstat(".")
	if err != nil {
		return Location{}, err
	}
	return Location{Host: s.Host(), Device: disk.Identity(info).FileSystem()}, nil
}

// HostNames returns names of hosts, with more of what tells them apart where two are called the same.
func HostNames(at []Location) (names []string) {
	first, shared := map[string]disk.Host{}, map[string]bool{}
	for _, x := range at {
		if host, known := first[x.Host.Name]; !known {
			first[x.Host.Name] = x.Host
		} else if host != x.Host {
			shared[x.Host.Name] = true
		}
	}
	for _, x := range at {
		name := x.Host.Name
		if shared[name] {
			name += fmt.Sprintf(" (boot %s)", x.Host.Boot)
		}
		names = append(names, name)
	}
	return names
}

// A domain is what is lost at a time, and takes nodes with it.
type domain struct {
	name  string // "": it has none for people
	nodes []int
}

// DomainsOf puts nodes with the same key together, those of most nodes first. Nodes without a key are left out.
func DomainsOf[K comparable](nodes int, key func(n int) (key K, name string, ok bool)) (list []*domain) {
	of := map[K]*domain{}
	for n := range nodes {
		key, name, ok := key(n)
		if !ok {
			continue
		}
		if of[key] == nil {
			of[key] = &domain{name: name}
			list = append(list, of[key])
		}
		of[key].nodes = append(of[key].nodes, n)
	}
	slices.SortStableFunc(list, func(a, b *domain) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })
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
func CheckDomains(at []Location, tolerate int) (r sharing) {
	r.Hosts = HostNames(at)
	for _, x := range at {
		r.Devices = append(r.Devices, x.Device)
	}
	note := func(what string, list []*domain) {
		text, over := Share(what, list, len(at), tolerate)
		if text != "" {
			r.Notes = append(r.Notes, text)
		}
		if over {
			r.Crowded = append(r.Crowded, text)
		}
	}
	hosts := DomainsOf(len(at), func(n int) (disk.Host, string, bool) { return at[n].Host, r.Hosts[n], at[n].Host != disk.Host{} })
	disks := DomainsOf(len(at), func(n int) (Location, string, bool) { return at[n], "", at[n].Device != "" })
	if len(hosts) > 1 {
		note("host", hosts)
		disks = slices.DeleteFunc(disks, func(d *domain) bool { // what has been said of the host
			return len(d.nodes) > 1 && slices.ContainsFunc(hosts, func(h *domain) bool { return slices.Equal(h.nodes, d.nodes) })
		})
	}
	note("disk", disks)
	return r
}

// AllOn says of a group that all of it is lost at a time.
func AllOn(what string) string {
	return fmt.Sprintf("all nodes are on one %s, and lost with it: give each node a %s of its own", what, what)
}

// Share says which nodes share domains of a kind, and what may be lost then; "": none do. It reports whether one of them
// takes more nodes than may be lost.
func Share(what string, list []*domain, nodes, tolerate int) (text string, over bool) {
	if len(list) == 0 || len(list[0].nodes) < 2 {
		return "", false
	}
	if len(list[0].nodes) == nodes {
		return AllOn(what), true
	}
	var shared []string
	fatal, may, left := 0, 0, tolerate
	for _, d := range list {
		count := len(d.nodes)
		if count > 1 {
			name := ""
			if d.name != "" {
				name = " (" + d.name + ")"
			}
			shared = append(shared, fmt.Sprintf("%s are on one %s%s", numbered(d.nodes), what, name))
		}
		switch {
		case count > tolerate:
			fatal++
		case count <= left:
			may++
			left -= count
		default: // there is no room for the largest that are left
			left = 0
		}
	}
	text = pass.AndMore(shared[:min(len(shared), pass.MostNamed)], "; ", len(shared))
	which := fmt.Sprintf("any %d %ss", may, what)
	if may == 1 {
		which = fmt.Sprintf("any 1 %s", what)
	}
	switch {
	case fatal > 0 && may == 0:
		which = "no " + what
	case fatal == 1:
		which += " but this one"
	case fatal > 1:
		which += " but these"
	}
	if fatal == 1 {
		text += fmt.Sprintf(": losing it loses %d nodes of R = %d", len(list[0].nodes), tolerate)
	} else if fatal > 1 {
		text += fmt.Sprintf(": losing one loses up to %d nodes of R = %d", len(list[0].nodes), tolerate)
	}
	noun := "nodes"
	if tolerate == 1 {
		noun = "node"
	}
	return fmt.Sprintf("%s. What may be lost: any %d %s, %s", text, tolerate, noun, which), fatal > 0
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
	return "nodes " + pass.AndMore(list[:pass.MostNamed], ", ", len(list))
}
