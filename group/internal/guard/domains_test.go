package guard

import (
	"slices"
	"strings"
	"testing"
	"volley/internal/disk"
)

// TestSharing says what may be lost where nodes share hosts.
func TestSharing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		hosts    string // of nodes, by letter
		tolerate int
		want     string
	}{
		{"abcdef", 1, ""},
		{"aabbcc", 4, "nodes 0 and 1 are on one host (a); nodes 2 and 3 are on one host (b); nodes 4 and 5 are on one host (c). What may be lost: any 4 nodes, any 2 hosts"},
		{"aabcde", 3, "nodes 0 and 1 are on one host (a). What may be lost: any 3 nodes, any 2 hosts"},
		{"aaaabcd", 3, "nodes 0, 1, 2 and 3 are on one host (a): losing it loses 4 nodes of R = 3. What may be lost: any 3 nodes, any 3 hosts but this one"},
		{"aaabbc", 1, "nodes 0, 1 and 2 are on one host (a); nodes 3 and 4 are on one host (b): losing one loses up to 3 nodes of R = 1. What may be lost: any 1 node, any 1 host but these"},
		{"aaaaaaab", 1, "nodes 0, 1, 2, 3, 4 and 2 more are on one host (a): losing it loses 7 nodes of R = 1. What may be lost: any 1 node, any 1 host but this one"},
		{"aabbccddeeff", 2, "nodes 0 and 1 are on one host (a); nodes 2 and 3 are on one host (b); nodes 4 and 5 are on one host (c); nodes 6 and 7 are on one host (d); nodes 8 and 9 are on one host (e) and 1 more. What may be lost: any 2 nodes, any 1 host"},
	} {
		list := DomainsOf(len(x.hosts), func(n int) (key, name string) { return x.hosts[n : n+1], x.hosts[n : n+1] })
		text, over := Share("host", list, len(x.hosts), x.tolerate)
		if text != x.want || over != strings.Contains(x.want, "losing") {
			t.Errorf("%s, %d: %q, %v: want %q", x.hosts, x.tolerate, text, over, x.want)
		}
	}
}

// TestTogether has nodes in two containers of one machine, and on two partitions of one disk.
func TestTogether(t *testing.T) {
	t.Parallel()
	at := func(name, boot, of string) Location {
		return Location{Host: disk.HostID{Name: name, Boot: boot}, Disk: of}
	}
	for _, x := range []struct {
		what  string
		at    []Location
		notes []string
	}{
		{"partitions", []Location{at("a", "1", "sda"), at("a", "1", "sda"), at("a", "1", "sdb")},
			[]string{"nodes 0 and 1 are on one disk (sda): losing it loses 2 nodes of R = 1. What may be lost: any 1 node, any 1 disk but this one"}},
		{"containers", []Location{at("a", "1", "sda"), at("b", "1", "sdb"), at("c", "2", "sda")},
			[]string{"nodes 0 and 1 are on one host (a, b): losing it loses 2 nodes of R = 1. What may be lost: any 1 node, any 1 host but this one"}},
		{"disks of one name", []Location{at("a", "1", "sda"), at("b", "2", "sda"), at("c", "", "sda")}, nil},
		{"nobody knows", []Location{{}, {}, {}}, nil},
	} {
		if is, _ := CheckDomains(x.at, 1); !slices.Equal(is, x.notes) {
			t.Errorf("%s: %q, want %q", x.what, is, x.notes)
		}
	}
}
