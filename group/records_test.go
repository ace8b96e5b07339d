package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/fuzzlimit"
	"volley/internal/verifyall"
)

// spoil removes, damages or empties a file.
func spoil(w *world, name string, how int) {
	switch how {
	case 0:
		w.Remove(name)
	case 1:
		w.Overwrite(name, 5, []byte("#"), true)
	default:
		w.WriteFile(name, nil, 0o600)
	}
}

// TestRecords loses nodes, and damages or removes record files and manifests of others, in all combinations: what
// counting says can come back does, and all of it is as it was. Else recover names whose record is gone, and writes
// nothing.
func TestRecords(t *testing.T) {
	t.Parallel()
	const k = 4
	rng := rand.New(rand.NewPCG(4, 1))
	refused, recovered := 0, 0
	for r := 1; r < k; r++ {
		whole := newWorld(k, r)
		must(t, whole.protect())
		was, volleys := whole.trees(), whole.stored()
		m, err := store.DecodeManifest([]byte(contentOf(whole, "/n0/"+manifestPath(1))))
		must(t, err)
		const states = 5 // as it was, lost, without its record, without a copy, without any
		for combination := range 625 {
			if rng.IntN(verifyall.Pick(10, 1)) > 0 {
				continue
			}
			w := whole.clone()
			w.ranks = []int{1, 2, 4}[combination%3]
			left, lost, own := make([]int, k), 0, false // nodes that have a right record, or copy of it
			for n, rest := 0, combination; n < k; n, rest = n+1, rest/states {
				files := m.RecordFilesAt(n)
				bad := map[int]bool{}
				state := rest % states
				switch {
				case state == 1:
					w.lose(n%2, n)
					lost++
					own = true
					continue
				case rng.IntN(8) == 0: // a manifest too: then nothing of the generation counts there
					w.Overwrite(fmt.Sprintf("/n%d/%s", n, manifestPath(1)), 9, []byte("#"), true)
					own = true
					continue
				}
				switch state {
				case 2:
					bad[0] = true
				case 3:
					bad[1+rng.IntN(len(files)-1)] = true
				case 4:
					for i := range files {
						bad[i] = true
					}
				}
				for i, f := range files {
					if own = own || bad[0]; bad[i] {
						spoil(w, fmt.Sprintf("/n%d/%s", n, store.MetaPath(store.GenerationDir(1), f.Name)), rng.IntN(3))
					} else {
						left[f.Owner]++
					}
				}
			}
			if lost > r {
				continue
			}
			what := fmt.Sprintf("R = %d: combination %d: records left %v, %d lost", r, combination, left, lost)
			switch recordsBack(t, what, w, left, own, was, volleys) {
			case "refused":
				refused++
			case "recovered":
				recovered++
			}
		}
	}
	if refused < 20 || recovered < 100 {
		t.Errorf("%d were refused, and %d recovered", refused, recovered)
	}
}

// recordsBack recovers a group, whose nodes have so many right copies of each record left, and returns what came of it.
func recordsBack(t *testing.T, what string, w *world, left []int, own bool, was []string, volleys string) string {
	var gone []string
	for n, count := range left {
		if count == 0 {
			gone = append(gone, w.dirs[n])
		}
	}
	before := w.everything()
	err := w.recover()
	input := new(protection.RefusedError)
	switch undecided := errors.As(err, &input) && (strings.Contains(err.Error(), "cannot tell") || strings.Contains(err.Error(), "the group is not protected")); {
	case undecided:
		if !own {
			t.Errorf("%s: %v", what, err)
		}
	case gone != nil:
		if !errors.As(err, &input) || !strings.HasSuffix(err.Error(), "no node has the record of "+strings.Join(gone, ", ")+" any more") {
			t.Errorf("%s: %v: want %v named", what, err, gone)
		}
		must(t, diff(what, before, w.everything()))
		return "refused"
	default:
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return ""
		}
		for n := range w.dirs {
			must(t, diff(what, was[n], w.tree(n)))
		}
		must(t, w.whole())
		must(t, diff(what, volleys, w.stored()))
		return "recovered"
	}
	return ""
}

// TestRecordsForged has the only node that is left say that records are longer than they are: verify and recover end, in
// little memory.
func TestRecordsForged(t *testing.T) {
	for _, forge := range []func(m *store.Manifest){
		func(m *store.Manifest) { m.Records[0].Bytes = store.MostRecord },
		func(m *store.Manifest) { m.Records[1].Bytes = store.MostRecord },
		func(m *store.Manifest) { m.Records[0].Bytes++ },
	} {
		w := newWorld(2, 1)
		must(t, w.protect())
		w.lose(0, 1)
		const path = "/n0/.volley/generation.1/manifest.json"
		m, err := store.DecodeManifest([]byte(contentOf(w, path)))
		must(t, err)
		forge(m)
		text, err := m.Encode(nil)
		must(t, err)
		w.WriteFile(path, text, 0o600)
		before := w.everything()
		end := fuzzlimit.Hold(t, len(text))
		if r, err := w.verifyBy(w.Process()); err == nil && r.Intact {
			t.Errorf("verify: %+v", r)
		}
		if err := w.recover(); err == nil {
			t.Error("it is recovered")
		}
		end()
		must(t, diff("after it", before, w.everything()))
	}
}
