package group

import (
	"math/rand/v2"
	"sync"
	"testing"

	"volley/internal/disk/disktest"
)

// TestRunsAtOnce has two or three runs use a group at once, on a group of which files have
// changed and a node is lost. Those that only verify do not disturb each other; of others one
// has the group, and the rest are told so.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	verbs := []struct {
		name   string
		run    func(w *world, p *disktest.Process) error
		shares bool
	}{
		{"protect", func(w *world, p *disktest.Process) error { _, err := w.protectBy(p, ProtectOptions{}); return err }, false},
		{"recover", func(w *world, p *disktest.Process) error { _, err := w.recoverBy(p, RecoverOptions{}); return err }, false},
		{"verify", func(w *world, p *disktest.Process) error { _, err := w.verifyBy(p); return err }, true},
	}
	for _, lost := range []bool{false, true} {
		first := newWorld(4, 2)
		must(t, first.protect())
		protected := first.trees()
		if lost {
			first.lose(0, 2)
		} else {
			first.AppendFile("/n1/plain", []byte("and more"))
		}
		for set := range 9 + 3 {
			list := []int{set / 3, set % 3}
			if set >= 9 {
				list = []int{rand.IntN(3), rand.IntN(3), rand.IntN(3)}
			}
			for range *mostCalls {
				w := first.clone()
				w.ranks = 1 + rand.IntN(3)
				before := w.trees()
				errs := make([]error, len(list))
				var wg sync.WaitGroup
				for i, v := range list {
					wg.Go(func() { errs[i] = verbs[v].run(w, w.Process()) })
				}
				wg.Wait()
				won, only, protects := 0, true, false
				for i, v := range list {
					only = only && verbs[v].shares
					switch {
					case errs[i] == nil:
						won++
						protects = protects || verbs[v].name == "protect"
					case lost && IsInputError(errs[i]) && verbs[v].name == "protect": // it has to be recovered
						won++
					case !isBusy(errs[i]):
						t.Errorf("%v: %s: %v", list, verbs[v].name, errs[i])
					}
				}
				if only && won < len(list) {
					t.Errorf("%v: %v: all only verify", list, errs)
				}
				// Who has node 0 first has all in the end.
				if won == 0 {
					t.Errorf("%v: %v: nobody had the group", list, errs)
				}
				for n := range w.dirs {
					is, want := w.tree(n), before[n]
					if lost && n == 2 && is != want {
						want = protected[n]
					}
					if err := diff("", want, is); err != nil {
						t.Errorf("%v: node %d: %v", list, n, err)
					}
				}
				if protects {
					must(t, w.whole())
				}
				must(t, w.recover())
				must(t, w.protect())
				must(t, w.whole())
			}
		}
	}
}
