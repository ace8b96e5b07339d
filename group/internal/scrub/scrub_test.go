package scrub

import (
	"errors"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestLatestReading has what is noted at a node be anything: what is no note counts for nothing. Of several numbers of parts the one
// counts by which all was read last, and of its parts the one that was read the longest ago.
func TestLatestReading(t *testing.T) {
	t.Parallel()
	start := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }
	const dir = "/n/.volley/" + store.ScrubName
	for what, x := range map[string]struct {
		do   func(m *disktest.Machine)
		want *protection.Reading
	}{
		"all parts":     {func(*disktest.Machine) {}, &protection.Reading{Since: hour(1), Part: 2, Parts: 3}},
		"one is gone":   {func(m *disktest.Machine) { m.Remove(dir + "/2-3") }, nil},
		"all are gone":  {func(m *disktest.Machine) { m.RemoveAll(dir) }, nil},
		"somebody's":    {func(m *disktest.Machine) { m.RemoveAll(dir); m.WriteFile(dir, []byte("mine"), 0o600) }, nil},
		"another name":  {func(m *disktest.Machine) { m.Rename(dir+"/2-3", dir+"/02-3") }, nil},
		"a whole later": {func(m *disktest.Machine) { m.WriteFile(dir+"/1-1", nil, 0o600); m.SetTime(dir+"/1-1", hour(2)) }, &protection.Reading{Since: hour(2), Part: 1, Parts: 1}},
		"a whole before": {func(m *disktest.Machine) { m.WriteFile(dir+"/1-1", nil, 0o600); m.SetTime(dir+"/1-1", hour(0)) },
			&protection.Reading{Since: hour(1), Part: 2, Parts: 3}},
		"no parts": {func(m *disktest.Machine) {
			for _, name := range []string{"2-3 ", "0-4", "5-4", "-1-4", "2-", "1-1001", "x"} {
				m.WriteFile(dir+"/"+name, nil, 0o600)
			}
		}, &protection.Reading{Since: hour(1), Part: 2, Parts: 3}},
	} {
		m := disktest.NewMachine()
		m.MkdirAll("/n/.volley", 0o700)
		d, err := m.Process().Open("/n")
		n := &store.Node{Dir: d, Unlock: func(bool) {}}
		for i, when := range []int{3, 1, 2} {
			err = errors.Join(err, note(n, Part{i + 1, 3}, hour(when)))
		}
		if err != nil {
			t.Fatal(err)
		}
		x.do(m)
		is := latestReading(n)
		if (is == nil) != (x.want == nil) || is != nil && *is != *x.want {
			t.Errorf("%s: %+v, want %+v", what, is, x.want)
		}
	}
	if err := note(&store.Node{}, Part{1, 1}, start); err == nil || latestReading(&store.Node{}) != nil {
		t.Error("a node that is not locked is noted")
	}
}
