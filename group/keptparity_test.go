package group

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/internal/disk/disktest"
)

// rowFiles is how many files each node of [wide] has: one a row.
const rowFiles = 24

// wide returns a group whose nodes have many rows, and records of several lines, so that some of them change.
func wide() *world {
	w := &world{Machine: disktest.NewMachine(), r: 2, ranks: 1, deletes: true}
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 4 {
		w.dirs = append(w.dirs, fmt.Sprintf("/n%d", n))
		w.MkdirAll(w.dirs[n], 0o755)
		for i := range rowFiles {
			w.WriteFile(fmt.Sprintf("%s/f%02d", w.dirs[n], i), random(rng, 2*store.UsualBlock), 0o644)
		}
		for i := range 96 {
			w.Symlink(fmt.Sprintf("%x", random(rng, 2000)), fmt.Sprintf("%s/long%02d", w.dirs[n], i))
		}
	}
	w.Wait(time.Hour)
	return w.ordered()
}

// chain are what users do between runs of protect: files of one row change, the same one again, and chunks get longer and
// shorter.
var chain = []func(w *world){
	func(w *world) { w.Overwrite("/n0/f03", 5, []byte("one"), false) },
	func(w *world) { w.Overwrite("/n0/f03", 5, []byte("two"), false) },
	func(w *world) { w.Overwrite("/n1/f07", 100_000, []byte("three"), false) },
	func(w *world) { w.AppendFile("/n2/f23", make([]byte, 50_000)) },
	func(w *world) {},
	func(w *world) { w.Remove("/n2/f23") },
	func(w *world) {
		for i := range 11 { // with what came before more than a quarter of all parity
			w.Overwrite(fmt.Sprintf("/n3/f%02d", i), 0, []byte("seven"), false)
			w.Overwrite(fmt.Sprintf("/n3/f%02d", i), store.UsualBlock, []byte("seven"), false)
		}
	},
	func(w *world) { w.Overwrite("/n3/f11", 0, []byte("eight"), false) },
	func(w *world) { w.WriteFile("/n2/new", make([]byte, 300_000), 0o600) },
	func(w *world) {
		w.Overwrite("/n0/f03", 9, []byte("ten"), false)
		w.Overwrite("/n1/f21", 9, []byte("ten"), false)
	},
}

func step(w *world, i int) {
	chain[i](w)
	w.Wait(time.Minute)
	w.SyncAll()
}

// TestChangedParity protects after each of a chain of changes: it writes what has changed, the nodes come back, and now and then
// all parity is written.
func TestChangedParity(t *testing.T) {
	t.Parallel()
	w := wide()
	must(t, w.protect())
	whole := 0
	for i := range chain {
		step(w, i)
		p, written, renewed := w.Process(), int64(0), false
		p.Hook = func(c disktest.Call) error {
			if c.Op == "write" {
				written += int64(c.Bytes)
				renewed = renewed || strings.HasSuffix(c.Path, "/parity")
			}
			return nil
		}
		r, err := w.protectBy(p, ProtectOptions{})
		must(t, err)
		most := int64(r.Coded)*int64(w.r)*store.UsualBlock + int64(len(w.dirs))*(r.RecordBytes+4096)
		if renewed {
			whole++
		} else if written > most {
			t.Errorf("change %d: %d bytes are written for %d cells: want %d at most", i, written, r.Coded, most)
		}
		t.Logf("change %d: %d bytes are written for %d cells", i, written, r.Coded)
		must(t, w.whole(), comesBack(w, func(int64) []string { return w.trees() }, []int{i % 4, (i + 1) % 4}, i))
		if len(r.Notes) > 1 { // all nodes are on one disk
			t.Errorf("change %d: %q", i, r.Notes)
		}
	}
	if whole < 1 || whole > 2 {
		t.Errorf("nodes write all their parity after %d changes", whole)
	}
}

// damages are what befalls files of parity and of records at /n3, in generation 4.
var damages = map[string]func(w *world, dir string){
	"base":               func(w *world, dir string) { w.Overwrite(dir+"/parity", 9, []byte("rot"), true) },
	"no base":            func(w *world, dir string) { w.Remove(dir + "/parity") },
	"short base":         func(w *world, dir string) { w.WriteFile(dir+"/parity", make([]byte, 9), 0o600) },
	"changes":            func(w *world, dir string) { w.Overwrite(dir+"/changes.4", 9, []byte("rot"), true) },
	"no changes":         func(w *world, dir string) { w.Remove(dir + "/changes.3") },
	"longer changes":     func(w *world, dir string) { w.AppendFile(dir+"/changes.3", []byte("#")) },
	"a directory":        func(w *world, dir string) { w.Remove(dir + "/changes.3"); w.MkdirAll(dir+"/changes.3/sub", 0o700) },
	"index":              func(w *world, dir string) { w.Overwrite(dir+"/changes", 9, []byte("rot"), true) },
	"no index":           func(w *world, dir string) { w.Remove(dir + "/changes") },
	"an index elsewhere": func(w *world, dir string) { w.Remove(dir + "/changes"); w.MkdirAll(dir+"/changes", 0o700) },

	"record rot":         func(w *world, dir string) { w.Overwrite(dir+"/record@1", 60_000, []byte("rot"), true) },
	"no record piece":    func(w *world, dir string) { w.Remove(dir + "/record.2@1") },
	"short record piece": func(w *world, dir string) { w.WriteFile(dir+"/record.2@1", []byte("short"), 0o600) },
	"record directory":   func(w *world, dir string) { w.Remove(dir + "/record@1"); w.MkdirAll(dir+"/record@1/sub", 0o700) },
	"record pieces":      func(w *world, dir string) { w.WriteFile(dir+"/record", []byte("=1 5 9999999\n"), 0o600) },
	"no record":          func(w *world, dir string) { w.Remove(dir + "/record.0") },
}

// changedGroup returns a group at generation 4, whose parity lies in a base and files of changes.
func changedGroup(t testing.TB) *world {
	w := wide()
	must(t, w.protect())
	for i := range 3 {
		step(w, i)
		must(t, w.protect())
	}
	if dir := "/n3/" + store.MetaPath(store.GenerationDir(4)); !w.Exists(dir+"/changes.4") || !w.Exists(dir+"/changes.3") || w.Exists(dir+"/changes.2") {
		t.Fatal(w.Tree(dir))
	}
	return w
}

// TestDamagedChanges has parity or records damaged wherever they lie. Verify finds it, recover makes them again, parity in
// one file, a run of protect does, too, and blocks that are right serve to bring nodes back.
func TestDamagedChanges(t *testing.T) {
	t.Parallel()
	before := changedGroup(t)
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := before.clone()
			dir := "/n3/" + store.MetaPath(store.GenerationDir(4))
			damage(w, dir)
			kind, record := "parity", strings.Contains(name, "record")
			if record {
				kind = "record"
			}
			if r, err := w.verifyBy(w.Process()); err != nil || r.Intact || !strings.Contains(fmt.Sprint(r), store.GenerationDir(4)+"/"+kind) {
				t.Errorf("verify: %v, %+v", err, r)
			}
			must(t, comesBack(w, func(int64) []string { return w.trees() }, []int{2}, 1))
			again := w.clone()
			again.Overwrite("/n0/f05", 0, []byte("new"), false)
			if err := again.protect(); err != nil {
				t.Error(err)
			}
			if name != "base" && name != "changes" && name != "no index" { // what is found by reading alone
				must(t, again.whole())
			}
			must(t, w.recover(), w.whole())
			if text := w.Tree(dir); !record && (strings.Contains(text, "changes -rw") || strings.Contains(text, "changes.4")) {
				t.Errorf("recover has left\n%s", text)
			}
			must(t, comesBack(w, func(int64) []string { return w.trees() }, []int{0, 2}, 1))
		})
	}
}

// crashes interrupts a run on nodes: each time a check and whatever follows has to succeed, and all nodes come back then.
func crashes(t *testing.T, before *world, seed uint64, tries int, list []disktest.Interruption, run func(w *world, p *disktest.Process) error, check func(w *world, rng *rand.Rand) error) {
	(&disktest.Sweep{
		Machine: before.Machine, Interruptions: list, Tries: tries, Rand: rand.New(rand.NewPCG(*callSeed, seed)),
		Run: func(p *disktest.Process) error { return run(before.on(p.Machine()), p) },
		Check: func(x *disktest.Interrupted) error {
			w := before.on(x.Machine)
			if err := check(w, x.Rand); err != nil {
				return err
			}
			return cmp.Or(w.whole(), comesBack(w, func(int64) []string { return before.trees() }, []int{0, 2 + x.Rand.IntN(2)}, 1))
		},
	}).Test(t)
}

// crashChanged interrupts a run after some of the chain of changes.
func crashChanged(t *testing.T, i, tries int, list []disktest.Interruption) {
	before := wide()
	must(t, before.protect())
	for j := range i {
		step(before, j)
		must(t, before.protect())
	}
	was := before.trees()
	step(before, i)
	var changed []int // nodes, which count as lost until the run has ended
	for n := range was {
		if was[n] != before.tree(n) {
			changed = append(changed, n)
		}
	}
	oldest := int64(i + 1)
	crashes(t, before, uint64(i), tries, list, pairVerbs[0].run, func(w *world, rng *rand.Rand) error {
		r, err := w.verifyBy(w.Process())
		if err != nil || r.Generation > oldest && !r.Intact {
			return fmt.Errorf("verify: %v, %+v", err, r)
		}
		lost := slices.Clone(changed)
		for n := rng.IntN(4); len(lost) < 2; n = (n + 1) % 4 {
			if !slices.Contains(lost, n) {
				lost = append(lost, n)
			}
		}
		return cmp.Or(comesBack(w, func(g int64) []string {
			if g == oldest {
				return was
			}
			return before.trees()
		}, lost, 1), w.protect())
	})
}

// TestCrashChanged interrupts some runs of a chain of changes.
func TestCrashChanged(t *testing.T) {
	t.Parallel()
	for _, i := range []int{1, 3, 6} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			crashChanged(t, i, *mostCalls, interruptions)
		})
	}
}

// crashMend interrupts a recover of parity that lies in several files: no block that was right gets lost.
func crashMend(t *testing.T, tries int, list []disktest.Interruption) {
	before := changedGroup(t)
	damages["base"](before, "/n3/"+store.MetaPath(store.GenerationDir(4)))
	before.SyncAll()
	crashes(t, before, 5, tries, list, func(w *world, p *disktest.Process) error {
		r, err := w.recoverBy(p, RecoverOptions{})
		if err == nil && r.Unrecovered != nil {
			err = errLeft
		}
		return err
	}, func(w *world, _ *rand.Rand) error {
		err := comesBack(w, func(int64) []string { return before.trees() }, []int{0}, 1)
		if err != nil {
			return err
		}
		return w.recover()
	})
}

func TestCrashMend(t *testing.T) {
	t.Parallel()
	crashMend(t, *mostCalls, interruptions)
}
