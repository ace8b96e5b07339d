package grouptext

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
)

// TestStatesPrinted tests what status and verify say of groups in which something is lost: how many more nodes may be, and
// what to do next.
func TestStatesPrinted(t *testing.T) {
	node := func(n int, status string, findings ...string) group.NodeReport {
		r := group.NodeReport{Node: n, Dir: fmt.Sprint("/n", n), Status: status}
		for _, what := range findings {
			r.Findings = append(r.Findings, protection.Finding{Path: "f", Kind: what})
		}
		return r
	}
	for _, c := range []struct {
		name string
		r    group.VerifyReport
		says string // status and verify alike
		err  string
	}{
		{"one lost", group.VerifyReport{MayLose: 1, Nodes: []group.NodeReport{node(0, group.Lost), node(1, group.Intact), node(2, group.Intact)}},
			"1 more node may be lost now\n", "not whole: /n0 (lost); next: volley recover"},
		{"as many as may be", group.VerifyReport{Nodes: []group.NodeReport{node(0, group.Lost), node(1, group.Lost), node(2, group.Intact)}},
			"no more nodes may be lost now\n", "not whole: /n0 (lost), /n1 (lost); next: volley recover"},
		{"too many", group.VerifyReport{Nodes: []group.NodeReport{node(0, group.Lost), node(1, group.Lost), node(2, group.Lost)}},
			"3 nodes are lost, and the group tolerates the loss of 2: find a copy of one of them\n", "not whole: /n0 (lost), /n1 (lost), /n2 (lost)"},
		{"too much", group.VerifyReport{Beyond: true, Nodes: []group.NodeReport{node(0, group.Lost), node(1, group.Damaged), node(2, group.Intact)}},
			"too much is lost, damaged or changed for all of it to come back; to see what does not: volley recover --dry-run\n", "not whole: /n0 (lost), /n1 (damaged); next: volley recover, which brings back what it can"},
		{"a host away", group.VerifyReport{MayLose: 1, Nodes: []group.NodeReport{node(0, group.Unreachable), node(1, group.Damaged), node(2, group.Intact)}},
			"1 more node may be lost now\n", "not whole: /n0 (unreachable), /n1 (damaged); next, when that is mended: volley status"},
		{"at risk", group.VerifyReport{MayLose: 1, Nodes: []group.NodeReport{node(0, group.Changed, group.Changed, group.Metadata), node(1, group.Intact), node(2, group.Intact)}, Risks: []protection.Risk{{Node: 1, Dir: "/n1", Files: 1, Bytes: 1024}}},
			"1 more node may be lost now\nif 2 more nodes are lost, these files may not come back:\nnode 1  1 file, 1.0 KiB  /n1\nnext: volley protect\n", ""},
		{"all at risk", group.VerifyReport{Nodes: []group.NodeReport{node(0, group.Changed), node(1, group.Intact), node(2, group.Intact)}, Risks: []protection.Risk{{Node: 1, Dir: "/n1", Files: 2}}},
			"no more nodes may be lost now\nif 1 more node is lost, these files may not come back:\nnode 1  2 files, 0 B  /n1\n", ""},
	} {
		c.r.Protected, c.r.Tolerate, c.r.Generation, c.r.Digest = true, 2, 7, "sha256"
		c.r.Since = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		group := fmt.Sprintf("%d nodes, generation 7, ", len(c.r.Nodes))
		var status, verify strings.Builder
		Status(&status, &c.r, Style{})
		Verify(&verify, &c.r, Style{})
		wants(t, status.String(), group+"protected "+c.r.Since.Local().Format("2006-01-02 15:04:05 MST")+"\n"+c.says)
		wants(t, verify.String(), group+"compared by sha256\n"+c.says)
		if err := Broken(&c.r, Style{}); fmt.Sprint(err) != cmp.Or(c.err, "<nil>") {
			t.Errorf("%s: %v, want %s", c.name, err, c.err)
		}
		if err := Margin(&c.r, 2, Style{}); c.err == "" && c.r.MayLose < 2 && (exit.Code(err) != exit.Wrong || !strings.HasSuffix(err.Error(), "next: volley protect")) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := Margin(&c.r, 3, Style{}); c.err == "" && !strings.HasSuffix(err.Error(), "and 3 is asked for, which takes a group of 4 nodes") {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "at risk" {
			wants(t, status.String(), "node 0  changed  /n0  files: 1 changed, 1 other metadata\n")
		}
	}
}

func wants(t *testing.T, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%q has no %q", got, part)
	}
}
