package guard

import (
	"slices"
	"strings"
	"testing"

	"volley/internal/disk"
)

// TestSharing names nodes that share hosts.
func TestSharing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		hosts    string // of nodes, by letter
		tolerate int
		want     string
	}{
		{"abcdef", 1, ""},
		{"aaaabcd", 3, "nodes 0, 1, 2 and 3 are on one host (a), and more than may be lost"},
		{"aaabbc", 1, "nodes 0, 1 and 2 are on one host (a), and more than may be lost; nodes 3 and 4 are on one host (b), and more than may be lost"},
		{"aaaaaaab", 1, "nodes 0, 1, 2, 3, 4 and 2 more are on one host (a), and more than may be lost"},
		{"aabbccddeeff", 2, "nodes 0 and 1 are on one host (a); nodes 2 and 3 are on one host (b); nodes 4 and 5 are on one host (c); nodes 6 and 7 are on one host (d); nodes 8 and 9 are on one host (e) and 1 more"},
	} {
		list := DomainsOf(len(x.hosts), func(n int) (key, name string) { return x.hosts[n : n+1], x.hosts[n : n+1] })
		if text := strings.Join(Share("host", list, len(x.hosts), x.tolerate), ""); text != x.want {
			t.Errorf("%s, %d: %q: want %q", x.hosts, x.tolerate, text, x.want)
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
			[]string{"nodes 0 and 1 are on one disk (sda), and more than may be lost"}},
		{"containers", []Location{at("a", "1", "sda"), at("b", "1", "sdb"), at("c", "2", "sda")},
			[]string{"nodes 0 and 1 are on one host (a, b), and more than may be lost"}},
		{"disks of one name", []Location{at("a", "1", "sda"), at("b", "2", "sda"), at("c", "", "sda")}, nil},
		{"nobody knows", []Location{{}, {}, {}}, nil},
	} {
		if is := CheckDomains(x.at, 1); !slices.Equal(is, x.notes) {
			t.Errorf("%s: %q, want %q", x.what, is, x.notes)
		}
	}
}
