package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/internal/fuzzlimit"
	"volley/internal/verifyall"
)

// goneRecords returns the nodes whose records no codeword brings back, by counting: of a codeword as many symbols may
// be missing as it has parity.
func goneRecords(layout string, k, r int, record, parity []bool) []int {
	var gone []int
	if layout == Full {
		r = k / 2
	}
	r = min(r+1, k-1)
	for t := range k { // parity at nodes t to t+r-1, data at the others
		missing, left := []int{}, 0
		for i := range k {
			switch n := (t + i) % k; {
			case i < r && !parity[n]:
				left++
			case i >= r && record[n]:
				missing = append(missing, n)
			}
		}
		if len(missing) > left {
			gone = append(gone, missing...)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

// TestRecords loses nodes, and damages or removes record files and manifests of others, in all combinations: what
// counting says can come back does, and all of it is as it was. Else recover names whose record is gone, and writes
// nothing.
func TestRecords(t *testing.T) {
	t.Parallel()
	const k = 4
	rng := rand.New(rand.NewPCG(4, 1))
	refused, recovered := 0, 0
	for _, x := range []struct {
		layout string
		r      int
	}{{Full, 1}, {Full, 2}, {Striped, 1}, {Striped, 2}, {Striped, 3}} {
		whole := newWorld(k, x.r, x.layout)
		must(t, whole.protect())
		was, volleys := whole.trees(), whole.stored()
		const states = 5 // as it was, lost, without its record, without parity of records, without either
		for combination := range 625 {
			if verifyall.Most(1, 8)*rng.IntN(8) > 1 {
				continue
			}
			w := whole.clone()
			w.ranks = []int{1, 2, 4}[combination%3]
			record, parity, lost := make([]bool, k), make([]bool, k), 0
			for n, rest := 0, combination; n < k; n, rest = n+1, rest/states {
				meta := fmt.Sprintf("/n%d/.volley/", n)
				spoil := func(name string) {
					switch rng.IntN(3) {
					case 0:
						w.Remove(meta + name)
					case 1:
						w.Overwrite(meta+name, 5, []byte("#"), true)
					default:
						w.WriteFile(meta+name, nil, 0o600)
					}
				}
				state := rest % states
				record[n], parity[n] = state == 1 || state == 2 || state == 4, state == 1 || state == 3 || state == 4
				switch {
				case state == 1:
					w.lose(n%2, n)
					lost++
					continue
				case rng.IntN(8) == 0: // a manifest too: then nothing of the generation counts there
					w.Overwrite(meta+"manifest.1.json", 9, []byte("#"), true)
					record[n], parity[n] = true, true
				}
				if state == 2 || state == 4 {
					spoil("record.1")
				}
				if state == 3 || state == 4 {
					spoil("recordparity.1")
				}
			}
			if lost > x.r {
				continue
			}
			what := fmt.Sprintf("%+v: record %v, parity %v, %d lost", x, record, parity, lost)
			gone := goneRecords(x.layout, k, x.r, record, parity)
			before := w.everything()
			err := w.recover()
			input := new(InputError)
			switch undecided := errors.As(err, &input) && (strings.Contains(err.Error(), "cannot tell which") || strings.Contains(err.Error(), "the group is not protected")); {
			case undecided:
				if !slices.Contains(record, true) {
					t.Errorf("%s: %v", what, err)
				}
			case gone != nil:
				var names []string
				for _, n := range gone {
					names = append(names, w.dirs[n])
				}
				if !errors.As(err, &input) || !strings.HasSuffix(err.Error(), "no node has the record of "+strings.Join(names, ", ")+" any more") {
					t.Errorf("%s: %v: want %v named", what, err, names)
				}
				must(t, diff(what, before, w.everything()))
				refused++
			default:
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				for n := range w.dirs {
					must(t, diff(what, was[n], w.tree(n)))
				}
				must(t, w.whole())
				must(t, diff(what, volleys, w.stored()))
				recovered++
			}
		}
	}
	if refused < 20 || recovered < 100 {
		t.Errorf("%d were refused, and %d recovered", refused, recovered)
	}
}

// TestRecordsForged has the only node that is left say that records are longer than they are: verify and recover end, in
// little memory.
func TestRecordsForged(t *testing.T) {
	for _, forge := range []func(m *Manifest){
		func(m *Manifest) { m.Records[0].Bytes = mostRecord },
		func(m *Manifest) { m.Records[1].Bytes = mostRecord },
		func(m *Manifest) { m.Records[0].Bytes++ },
	} {
		w := newWorld(2, 1, Striped)
		must(t, w.protect())
		w.lose(0, 1)
		const path = "/n0/.volley/manifest.1.json"
		m, err := DecodeManifest([]byte(content(w, path)))
		must(t, err)
		forge(m)
		text, err := m.encode(nil)
		must(t, err)
		w.WriteFile(path, text, 0o600)
		before := w.everything()
		end := fuzzlimit.Hold(t, len(text))
		if r, err := w.verifyBy(w.Process(), VerifyOptions{}); err == nil && r.Whole {
			t.Errorf("verify: %+v", r)
		}
		if err := w.recover(); err == nil {
			t.Error("it is recovered")
		}
		end()
		must(t, diff("after it", before, w.everything()))
	}
}
