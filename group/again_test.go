package group

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestResizeSeen ends the run that resizes a group at each of its calls. From the moment on in which a node has committed
// the new epoch, a run with the old directories is told the new ones, and these bring a lost node back: no advice and no
// option leads back to the old epoch.
func TestResizeSeen(t *testing.T) {
	t.Parallel()
	x := resizingCase{"", []string{"/n4", "/n5"}, []string{"/n1"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n4", "/n2", "/n3", "/n5"}}
	w := x.world(t)
	was := w.trees()
	told := 0
	for _, c := range w.Calls(func(p *disktest.Process) { _, err := x.run(w, p, false, ResizeOptions{}); must(t, err) }) {
		if !c.Writes || *mostCalls > 0 && (c.N+int(*callSeed))%4 > 0 {
			continue
		}
		y := w.clone()
		p := y.Process()
		p.KillAt(c.N)
		x.run(y, p, false, ResizeOptions{})
		p.Kill()
		old, now := y.of(x.was), y.of(x.is)
		_, err := old.verifyBy(old.Process())
		if err == nil {
			must(t, x.inForce(y, x.was, was, rand.New(rand.NewPCG(1, uint64(c.N)))))
			continue
		}
		told++
		if !IsInputError(err) || !strings.Contains(err.Error(), "the group was resized") || !strings.Contains(err.Error(), "/n0, /n4, /n2, /n3, /n5") {
			t.Errorf("killed at %v: %v", c, err)
		}
		_, err = old.with(protection.Settings{Believe: "/n1"}).recoverBy(old.Process(), RecoverOptions{})
		if !IsInputError(err) {
			t.Errorf("killed at %v: node 1 is believed: %v", c, err)
		}
		now.lose(0, 2)
		must(t, now.recover())
		must(t, diff("node 2", was[2], y.tree(2)))
		_, err = x.run(y, y.Process(), false, ResizeOptions{}) // once more
		must(t, err)
		must(t, now.whole())
	}
	if told < 3 {
		t.Errorf("%d runs found the new epoch", told)
	}
}

// TestResizeAgain repeats what has been done, by directories and by the numbers of the group as it was: nothing else
// leaves.
func TestResizeAgain(t *testing.T) {
	t.Parallel()
	for _, x := range append(slices.Clone(resizings),
		resizingCase{"by number", nil, []string{"1"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n3", "/n2"}},
		resizingCase{"two by number", nil, []string{"0", "2"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n3", "/n1"}},
		resizingCase{"two join and one leaves, by number", []string{"/n4", "/n5"}, []string{"0"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n4", "/n1", "/n2", "/n3", "/n5"}},
	) {
		w := x.world(t)
		was := w.trees()
		for again := range 4 {
			_, err := x.run(w, w.Process(), again%2 == 1, ResizeOptions{ProtectOptions: ProtectOptions{Force: again == 2}})
			if err != nil {
				t.Errorf("%s, %d times before: %v", x.name, again, err)
			}
			must(t, w.of(x.is).whole())
			for n, tree := range w.trees() {
				must(t, diff(x.name, was[n], tree))
			}
		}
	}
}
