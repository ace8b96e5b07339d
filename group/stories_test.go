package group

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
)

// A story is what happens to node 1 of a group that is protected, and what verbs make of it.
type story struct {
	name    string
	k, r    int // 0: 4 nodes, of which 2 may be lost
	event   func(w *world)
	finds   string // by verify, at the node
	refused string // protect, and the option that it names; "": it is not
	left    string // what recover, asked to bring everything back, says; "": all is as it was
}

// after are things that happen one after the other.
func after(list ...func(w *world)) func(w *world) {
	return func(w *world) {
		for _, do := range list {
			do(w)
		}
	}
}

func deleting(names ...string) func(w *world) {
	return func(w *world) {
		for _, name := range names {
			w.RemoveAll("/n1/" + name)
		}
	}
}

func rotting(names ...string) func(w *world) {
	return func(w *world) {
		for _, name := range names {
			w.Overwrite("/n1/"+name, 3, []byte("rot"), true)
		}
	}
}

func writing(names ...string) func(w *world) {
	return func(w *world) {
		for _, name := range names {
			w.MkdirAll(path.Dir("/n1/"+name), 0o700)
			w.WriteFile("/n1/"+name, []byte("another text"), 0o644)
		}
	}
}

func moving(from, to string) func(w *world) {
	return func(w *world) { w.Rename("/n1/"+from, "/n1/"+to) }
}

const inForce = ".volley/generation.1/"

var (
	mostFiles = []string{"plain", "big", "sub/x", "closed/inner/z"}
	allFiles  = append([]string{"sub/deep/y", "twin", "empty", "odd \xff"}, mostFiles...)
)

var stories = []story{
	{name: "nothing", event: func(*world) {}},
	{name: "a file is deleted", event: deleting("sub/deep/y"),
		finds: "sub/deep/y deleted"},
	{name: "a directory is deleted", event: deleting("sub"),
		finds: "sub deleted, sub/deep deleted, sub/deep/y deleted, sub/void deleted, sub/x deleted"},
	{name: "one name of two is deleted", event: deleting("twin"),
		finds: "twin deleted"},
	{name: "the disk has lost a file", event: func(w *world) { w.Lose("/n1/sub/deep/y") },
		finds: "sub/deep/y missing", refused: "Force: recover first what nobody has deleted"},
	{name: "more than half are deleted", event: deleting(mostFiles...),
		finds: "big deleted, closed/inner/z deleted, plain deleted, sub/x deleted", refused: "AcceptDeleted: this looks like an accident, which protect would make permanent: /n1 has 3 of 7 files"},
	{name: "all are deleted", event: deleting(allFiles...),
		finds: "big missing, closed/inner/z missing, empty missing, odd \xff missing, plain missing, sub/deep/y missing, sub/x missing, twin missing", refused: "AcceptDeleted: this looks like an accident, which protect would make permanent: /n1 has 0 of 7 files"},
	{name: "four are emptied", event: func(w *world) {
		for _, name := range mostFiles {
			w.WriteFile("/n1/"+name, nil, 0o644)
		}
	},
		finds: "big changed, closed/inner/z changed, plain changed, sub/x changed", refused: "AcceptDeleted: this looks like an accident, which protect would make permanent: /n1 has 3 of 7 files"},
	{name: "a file is cut short, and keeps its time", event: func(w *world) { w.Cut("/n1/plain", 100) },
		finds: "plain damaged", refused: "Force: /n1/plain is damaged"},
	{name: "a file is longer, and keeps its time", event: func(w *world) {
		w.Overwrite("/n1/plain", 0, make([]byte, 400), true)
	},
		finds: "plain damaged", refused: "Force: /n1/plain is damaged"},
	{name: "a file rots", event: rotting("plain"),
		finds: "plain damaged", refused: "Force: /n1/plain is damaged"},
	{name: "a file is moved, and rots", event: after(moving("plain", "z"), rotting("z")),
		finds: "plain missing, z new"},
	{name: "a directory is moved, and a file in it rots", event: after(moving("sub", "elsewhere"), rotting("elsewhere/deep/y")),
		finds: "elsewhere new, elsewhere/deep new, elsewhere/deep/y new, sub deleted, sub/deep deleted, sub/deep/y missing, sub/void moved elsewhere/void, sub/x moved elsewhere/x, twin damaged", refused: "Force: /n1/elsewhere/deep/y is damaged"},
	{name: "a file has other content and the time that it had", event: func(w *world) { w.setBack("/n1/plain", 0, []byte("new")) },
		finds: "plain changed"},
	{name: "the manifest is gone", event: deleting(inForce + "manifest.json"),
		finds: ".volley/generation.1/manifest.json damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "the manifest is a directory", event: after(deleting(inForce+"manifest.json"), func(w *world) { w.MkdirAll("/n1/"+inForce+"manifest.json", 0o700) }),
		finds: ".volley/generation.1/manifest.json damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "the manifest rots", event: rotting(inForce + "manifest.json"),
		finds: ".volley/generation.1/manifest.json damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "its manifest, its number and its files rot", event: rotting(inForce+"manifest.json", inForce+"node.json", "plain", "big"),
		finds: ".volley/generation.1/manifest.json damaged, big damaged, plain damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "its manifest, its record and files are gone, of two", k: 2, r: 1, event: after(deleting(inForce+"manifest.json", inForce+"record"), rotting("plain", "big")),
		finds: ".volley/generation.1/manifest.json damaged, big damaged, plain damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "its manifest, its number and files are gone, of two", k: 2, r: 1, event: after(deleting(inForce+"manifest.json", inForce+"node.json"), rotting("plain", "big")),
		finds: ".volley/generation.1/manifest.json damaged, big damaged, plain damaged", refused: "Force: /n1 is missing what was protected: recover it first"},
	{name: "all manifests are gone, of two", k: 2, r: 1, event: after(deleting(inForce+"manifest.json"), func(w *world) { w.Remove("/n0/" + inForce + "manifest.json") }),
		finds: "cannot tell whether generation 1 is in force", refused: "cannot tell whether generation 1 is in force w", left: "cannot tell whether generation 1 is in force"},
	{name: "two manifests and numbers are gone, of three", k: 3, r: 1, event: after(deleting(inForce+"manifest.json", inForce+"node.json"), func(w *world) {
		w.Remove("/n2/" + inForce + "manifest.json")
		w.Remove("/n2/" + inForce + "node.json")
	}),
		finds: "cannot tell which generation is in force", refused: "cannot tell which generation is in force", left: "cannot tell which generation is in force"},
	{name: "another group's manifest", k: 3, r: 1, event: func(w *world) {
		other := newWorld(3, 1)
		if err := other.protect(); err != nil {
			panic(err)
		}
		w.WriteFile("/n1/"+inForce+"manifest.json", []byte(contentOf(other, "/n1/"+inForce+"manifest.json")), 0o600)
	},
		finds: "/n1 belongs to another group than /n0, /n2", refused: "/n1 belongs to another group than /n0, /n2", left: "/n1 belongs to another group than /n0, /n2"},
	{name: "the parity rots", event: rotting(inForce + "parity"),
		finds: ".volley/generation.1/parity damaged"},
	{name: "an interrupted recovery has left somebody's files", event: after(deleting("plain"), writing(".volley/tmp-stage/14/file")),
		finds: "plain deleted", refused: "Force: a recovery of /n1 has not ended: recover it first"},
}

// TestStories tells each story: what is the matter, what protect refuses to make permanent, and what comes back.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, x := range stories {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(cmp.Or(x.k, 4), cmp.Or(x.r, 2))
			w.deletes = true
			must(t, w.protect())
			was := w.trees()
			w.Wait(time.Minute)
			x.event(w)
			v, err := w.verifyBy(w.Process())
			found := fmt.Sprint(err)
			if err == nil {
				found = listed(v.Nodes[1].Findings)
			}
			if x.finds == "" && found != "" || !strings.Contains(found, x.finds) {
				t.Errorf("verify finds %q", found)
			}
			c := w.clone()
			before := c.everything()
			_, err = c.protectBy(c.Process(), ProtectOptions{Full: true})
			refusal, told := new(protection.RefusedError), ""
			if errors.As(err, &refusal) {
				told = fmt.Sprintf("%s: %v", refusal.Option, err)
				must(t, diff("refused", before, c.everything()))
			} else {
				must(t, err, c.whole())
			}
			if x.refused == "" && told != "" || !strings.Contains(told, x.refused) {
				t.Errorf("protect says %q", told)
			}
			for _, glance := range []bool{true, false} {
				v, err := w.examineBy(w.Process(), glance)
				if accident := strings.HasPrefix(told, "Accept"); err == nil && (accident != (v.Accidents != nil) || accident && v.Broken() == nil) {
					t.Errorf("glance %v: accidents %v, and protect says %q", glance, v.Accidents, told)
				}
			}
			r, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
			left := fmt.Sprint(err)
			if err == nil {
				left = strings.Join(r.Unrecovered, "; ")
			}
			if x.left == "" && left != "" || !strings.Contains(left, x.left) {
				t.Errorf("recover says %q", left)
			}
			w.deletes = false
			if _, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}}); x.left == "" {
				must(t, err)
				for n, tree := range w.trees() {
					if !hasAll(lines(was[n]), lines(tree), false) {
						t.Errorf("recovered: %v", diff(w.dirs[n], was[n], tree))
					}
				}
				must(t, w.protect(), w.whole(), w.tidy(2))
			}
		})
	}
}

// spoil damages files of nodes, and has what lies in a generation of theirs rot, or takes it.
func (w *world) spoil(nodes int, rot bool, dir string, names ...string) {
	for _, node := range w.dirs[:nodes] {
		w.Overwrite(node+"/big", 5, []byte("rot"), true)
		for _, name := range names {
			if file := node + "/.volley/" + dir + "/" + name; rot {
				w.Overwrite(file, 30, []byte("rot"), true)
			} else {
				w.Remove(file)
			}
		}
	}
}
