package judge

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
)

// TestFates has evidence for each row: the row applies, and no earlier one. The table of docs/protect.md is this one.
func TestFates(t *testing.T) {
	t.Parallel()
	examples := map[string]Evidence{
		"new":            {New: true},
		"moved":          {Moved: true},
		"removed":        {Absent: true, Removed: true},
		"absent":         {Absent: true},
		"parted":         {Intact: true, Parted: true, OtherMeta: true},
		"other metadata": {Intact: true, OtherMeta: true},
		"intact":         {Intact: true, Untouched: true},
		"failing":        {Failing: true, Earlier: true, Written: true},
		"earlier":        {Earlier: true, Written: true},
		"written":        {Written: true, Forbidden: true},
		"forbidden":      {Untouched: true, Forbidden: true},
		"rotten":         {Untouched: true},
		"doubtful":       {Forbidden: true},
	}
	text, err := os.ReadFile("../../../docs/protect.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, r := range fates {
		if got := rowOf(fates, examples[r.name]); got.name != r.name {
			t.Errorf("%s: the example is %q", r.name, got.name)
		}
		kind := ""
		if r.verdict.Kind != "" {
			kind = "`" + r.verdict.Kind + "` "
		}
		rows = append(rows, fmt.Sprintf("| %s | %s| %s |\n", r.says, kind, r.verdict.Return))
	}
	if table := strings.Join(rows, ""); !strings.Contains(string(text), "|---|---|---|\n"+table+"\n") {
		t.Errorf("docs/protect.md has no such table:\n%s", table)
	}
}

// TestFatesTogether tries all evidence there can be: each row counts for some, and without --revert nothing takes the place
// of what users have made, or of what may be whole.
func TestFatesTogether(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	fields := reflect.TypeFor[Evidence]().NumField()
	for bits := range 1 << fields {
		var x Evidence
		for i := range fields {
			reflect.ValueOf(&x).Elem().Field(i).SetBool(bits>>i&1 == 1)
		}
		r := rowOf(fates, x)
		seen[r.name] = true
		want := x.Absent || !x.Intact && (x.Failing || x.Earlier || x.Untouched && !x.Written && !x.Forbidden)
		want = want && !x.New && !x.Moved && !x.Removed
		if comes := r.verdict.Return.Brings(protection.Edits{}); comes != want {
			t.Fatalf("%+v: %s comes back: %v", x, r.name, comes)
		}
	}
	for _, r := range fates {
		if !seen[r.name] {
			t.Errorf("%s: never", r.name)
		}
	}
}

// TestExposure counts erasures of four nodes that may lose two. Node 3 is lost where it says so.
func TestExposure(t *testing.T) {
	t.Parallel()
	m := &store.Manifest{Nodes: 4, Tolerate: 2, DataChunks: 2, ParityChunks: 2, ChunkBytes: 128, BlockBytes: 64}
	block, all := content.Symbol{Node: 1}, [][]int{{0, 1}, {0, 1}}
	for _, x := range []struct {
		bad     [][]int // of node 1
		lost    bool
		fewest  int // copies of a record
		mayLose int
		uneven  bool
	}{
		{nil, false, 4, 2, false},
		{nil, true, 4, 1, false},
		{nil, false, 2, 1, false},
		{[][]int{{0}}, false, 4, 1, true},
		{[][]int{{0}}, false, 2, 1, false},
		{[][]int{{0}}, true, 4, 0, true},
		{[][]int{{0}}, true, 1, 0, false},
	} {
		conditions := []*content.Condition{{}, {Data: x.bad}, {}, {}}
		if x.lost {
			conditions[3] = &content.Condition{Lost: true, Data: all, Parity: all}
		}
		e := ExposureOf(m, conditions, []int{4, x.fewest, 4, 4})
		if e.MayLose != x.mayLose || e.Uneven != x.uneven {
			t.Errorf("%+v: may lose %d, uneven %v", x, e.MayLose, e.Uneven)
		}
		if e.Uneven && (!e.Takes(block, 0, false) || e.Takes(block, 0, true) || e.Takes(block, 1, false)) {
			t.Errorf("%+v: another row is taken than the first, or its own erasure counts", x)
		}
	}
}
