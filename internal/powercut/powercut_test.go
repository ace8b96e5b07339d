//go:build linux && powercut

// go build -o volley ./cmd/volley && go test -tags powercut ./internal/powercut -v -timeout 2h -volley $PWD/volley -times 100

package powercut

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	volley  = flag.String("volley", "volley", "the program")
	systems = flag.String("fs", "ext4,xfs,btrfs,ext2", "file systems")
	times   = flag.Int("times", 100, "moments on each file system")
	where   = flag.String("dir", "/dev/shm/powercut", "where images lie, best in memory")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the moments")
)

// A fileSystem is how one is made, and what is done before it is mounted after a power cut.
type fileSystem struct {
	mebibytes int64
	make      []string
	check     []string
	codes     []int // that check may exit with
}

var fileSystems = map[string]fileSystem{
	"ext4":  {64, []string{"mkfs.ext4", "-q", "-F"}, nil, nil},
	"ext2":  {64, []string{"mkfs.ext2", "-q", "-F"}, []string{"e2fsck", "-f", "-y"}, []int{0, 1, 2}},
	"xfs":   {300, []string{"mkfs.xfs", "-q", "-f"}, nil, nil},
	"btrfs": {128, []string{"mkfs.btrfs", "-q", "-f"}, nil, nil},
}

// A kind is what is run.
type kind struct {
	name    string
	args    []string
	prepare string // by the shell, in the directory of the nodes; "" for a group that is not protected
	changed []int  // nodes that are not as they were protected
	kept    string // a file that is replaced, and that recover keeps
}

var groupKinds = []kind{
	{name: "first", args: []string{"protect", "--tolerate", "2"}},
	{name: "update", args: []string{"protect", "--tolerate", "2"}, changed: []int{1},
		prepare: `head -c 290000 /dev/urandom > n1/a; echo more > n1/d/more; mkdir n1/newdir; ln -s nowhere n1/newlink`},
	{name: "lost", args: []string{"recover"}, changed: []int{0, 2}, prepare: `rm -rf n0 n2`},
	{name: "damaged", args: []string{"recover"}, changed: []int{0, 3},
		prepare: `rm -r n0/a n0/d n0/link n0/void; touch -r n3 /tmp/powercut.time; rm n3/a; touch -r /tmp/powercut.time n3; rm n3/d/e/deep; touch -d '2003-02-03 04:05:06' n3/d/e`},
	{name: "revert", args: []string{"recover", "--revert", "changed"}, changed: []int{1}, kept: "mine",
		prepare: `printf mine > n1/a; printf mine > n1/d/e/deep`},
}

// nodes makes 4 nodes in the current directory.
const nodes = `for n in n0 n1 n2 n3; do
	mkdir -p $n/d/e $n/void/inner $n/closed
	head -c 300000 /dev/urandom > $n/a
	head -c 70000 /dev/urandom > $n/d/b
	head -c 3000 /dev/urandom > $n/d/e/deep
	head -c 500 /dev/urandom > $n/closed/c
	: > $n/empty
	ln -s d/b $n/link
	ln -s ../nowhere $n/d/dangling
	chmod 0600 $n/d/b; chmod 4750 $n/d/e/deep; chmod 0400 $n/closed/c
	touch -d '2001-02-03 04:05:06.789' $n/a $n/d/b
	touch -h -d '2002-02-03 04:05:06' $n/link
	chmod 0700 $n/d; chmod 0500 $n/closed; chmod 1777 $n/void
	touch -d '2003-02-03 04:05:06' $n/d/e $n/closed $n/void/inner $n/void $n/d
done`

// TestPowerCuts runs volley on files on a file system in an image, copies the image at random
// moments, and looks at the copy: what a command that had exited with 0 by then has done has to
// be there.
func TestPowerCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 0))
	t.Logf("seed %d", *seed)
	for name := range strings.SplitSeq(*systems, ",") {
		t.Run(name, func(t *testing.T) {
			system, ok := fileSystems[name]
			if !ok {
				t.Fatal("no such file system is known")
			}
			dir := filepath.Join(*where, name)
			fatal(os.MkdirAll(filepath.Join(dir, "mnt"), 0o700))
			defer os.RemoveAll(dir)
			var list []*run
			for i := range groupKinds {
				list = append(list, newRun(&groupKinds[i], name, system, dir))
			}
			over := 0
			for i := range *times {
				r := list[i%len(list)]
				exited, problem := r.cut(rng, i/len(list)%2 == 0)
				if exited {
					over++
				}
				if problem != nil {
					t.Errorf("%s, moment %d, after it exited with 0 %v: %v", r.kind.name, i, exited, problem)
				}
			}
			t.Logf("%d moments, %d of them after exit 0", *times, over)
		})
	}
}

// A run is a kind on a file system.
type run struct {
	kind   *kind
	system fileSystem
	dir    string
	mnt    string
	want   map[string]string // what is at the nodes in the end
	before map[string]string
	took   time.Duration
}

func (r *run) file(name string) string { return filepath.Join(r.dir, r.kind.name+"."+name) }

// newRun makes the image that each run begins with, and finds out how it ends.
func newRun(k *kind, name string, system fileSystem, dir string) *run {
	r := &run{kind: k, system: system, dir: dir, mnt: filepath.Join(dir, "mnt")}
	base := r.file("base.img")
	f, err := os.Create(base)
	fatal(err)
	fatal(errors.Join(f.Truncate(system.mebibytes<<20), f.Close()))
	must(append(slices.Clone(system.make), base)...)
	r.mounted(base, func() error {
		r.shell(nodes)
		if k.name != "first" {
			r.volley(true, "protect", "--tolerate", "2")
			r.want = r.look()
			r.shell(k.prepare)
		}
		return nil
	})
	r.mounted(base, func() error { // the times that a journal keeps may be coarser
		r.before = r.look()
		return nil
	})
	must("cp", "--reflink=never", base, r.file("cut.img"))
	r.mounted(r.file("cut.img"), func() error {
		begun := time.Now()
		if out, err := r.command(k.args...).CombinedOutput(); err != nil {
			fatal(fmt.Errorf("%s: %v: %s", k.name, err, out))
		}
		r.took = time.Since(begun)
		now := r.look()
		if k.args[0] == "protect" {
			r.want = now
		} else if d := difference(r.want, now); d != "" {
			fatal(fmt.Errorf("%s, %s: without any power cut: %s", name, k.name, d))
		}
		return nil
	})
	return r
}

// mounted does something while an image is mounted.
func (r *run) mounted(image string, f func() error) error {
	must("mount", "-o", "loop", image, r.mnt)
	err := f()
	must("umount", r.mnt)
	return err
}

func (r *run) shell(text string) {
	cmd := exec.Command("bash", "-e", "-c", text)
	cmd.Dir = r.mnt
	if out, err := cmd.CombinedOutput(); err != nil {
		fatal(fmt.Errorf("%s: %v: %s", text, err, out))
	}
}

func (r *run) dirs() (list []string) {
	for n := range 4 {
		list = append(list, filepath.Join(r.mnt, fmt.Sprint("n", n)))
	}
	return list
}

func (r *run) command(args ...string) *exec.Cmd {
	cmd := exec.Command(*volley, append(slices.Clone(args), r.dirs()...)...)
	cmd.Dir = r.mnt
	return cmd
}

// volley runs it to its end and returns an error where that is not what it should be.
func (r *run) volley(certain bool, args ...string) error {
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("volley %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	} else if args[0] == "verify" && (bytes.Contains(out, []byte(" metadata")) || bytes.Contains(out, []byte("note: "))) {
		err = fmt.Errorf("volley %s: %s", strings.Join(args, " "), out)
	}
	if certain {
		fatal(err)
	}
	return err
}

// look describes everything at the nodes but for .volley.
func (r *run) look() map[string]string {
	list := map[string]string{}
	for _, dir := range r.dirs() {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(r.mnt, path)
			if err != nil {
				list[rel] = err.Error()
				return nil
			}
			if d.Name() == ".volley" {
				return fs.SkipDir
			}
			info, err := os.Lstat(path)
			fatal(err)
			is := fmt.Sprintf("%v %v", info.Mode(), info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000"))
			if filepath.Dir(rel) == "." {
				is = info.Mode().String() // .volley comes and goes there
			}
			switch {
			case info.Mode().IsRegular():
				content, err := os.ReadFile(path)
				if err != nil {
					content = []byte(err.Error())
				}
				is += fmt.Sprintf(" %d bytes, %.8x", len(content), sha256.Sum256(content))
			case info.Mode()&fs.ModeSymlink != 0:
				target, err := os.Readlink(path)
				is += fmt.Sprint(" to ", target, " ", err)
			}
			list[rel] = is
			return nil
		})
	}
	return list
}

// difference tells what is not as it should be.
func difference(want, is map[string]string) string {
	var list []string
	for name, w := range want {
		if is[name] != w {
			list = append(list, fmt.Sprintf("%s is %q, want %q", name, is[name], w))
		}
	}
	for name := range is {
		if want[name] == "" {
			list = append(list, fmt.Sprintf("%s is there: %q", name, is[name]))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// cut copies the image at a random moment, or when the run has just ended, and looks at the
// copy.
func (r *run) cut(rng *rand.Rand, after bool) (exited bool, problem error) {
	work, cut := r.file("work.img"), r.file("cut.img")
	must("cp", "--reflink=never", r.file("base.img"), work)
	r.mounted(work, func() error {
		var out bytes.Buffer
		cmd := r.command(r.kind.args...)
		cmd.Stdout, cmd.Stderr = &out, &out
		fatal(cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var limit <-chan time.Time
		if !after {
			limit = time.After(time.Duration(rng.Int64N(int64(r.took * 5 / 4))))
		}
		over := func(err error) {
			if exited = err == nil; !exited {
				fatal(fmt.Errorf("%s: %v: %s", r.kind.name, err, &out))
			}
		}
		select {
		case err := <-ended:
			over(err)
		case <-limit:
			cmd.Process.Signal(syscall.SIGSTOP)
			select { // it may have ended before the signal came
			case err := <-ended:
				over(err)
			case <-time.After(2 * time.Millisecond):
			}
		}
		must("cp", "--reflink=never", work, cut)
		if !exited {
			cmd.Process.Kill()
			<-ended
		}
		return nil
	})
	if r.system.check != nil {
		cmd := exec.Command(r.system.check[0], append(slices.Clone(r.system.check[1:]), cut)...)
		if out, err := cmd.CombinedOutput(); !slices.Contains(r.system.codes, cmd.ProcessState.ExitCode()) {
			return exited, fmt.Errorf("%v: %s", err, out)
		}
	}
	return exited, r.mounted(cut, func() error { return r.check(exited) })
}

// check looks at what a power cut has left.
func (r *run) check(exited bool) error {
	k := r.kind
	protects := k.args[0] == "protect"
	is := r.look()
	switch {
	case exited || protects:
		if d := difference(r.want, is); d != "" {
			return errors.New(d)
		}
	default:
		if d := difference(r.untouched(r.before), r.untouched(is)); d != "" {
			return errors.New(d)
		}
	}
	lose := func(list ...string) error {
		for _, n := range list {
			fatal(os.RemoveAll(filepath.Join(r.mnt, n)))
		}
		if err := r.volley(false, "recover"); err != nil {
			return fmt.Errorf("%v lost: %w", list, err)
		}
		if d := difference(r.want, r.look()); d != "" {
			return fmt.Errorf("%v lost and recovered: %s", list, d)
		}
		return nil
	}
	if !exited {
		if k.name == "update" {
			if err := lose("n3"); err != nil {
				return err
			}
		}
		if err := r.volley(false, k.args...); err != nil {
			return fmt.Errorf("run again: %w", err)
		}
		if d := difference(r.want, r.look()); d != "" {
			return fmt.Errorf("run again: %s", d)
		}
	}
	if err := r.volley(false, "verify"); err != nil {
		return err
	}
	if k.kept != "" {
		kept, _ := filepath.Glob(filepath.Join(r.mnt, "n*/.volley/replaced/*/*"))
		deep, _ := filepath.Glob(filepath.Join(r.mnt, "n*/.volley/replaced/*/d/e/*"))
		found := 0
		for _, path := range append(kept, deep...) {
			if content, _ := os.ReadFile(path); string(content) == k.kept {
				found++
			}
		}
		if found < 2 {
			return fmt.Errorf("of what was replaced, %d of 2 files are kept: %v %v", found, kept, deep)
		}
	}
	return lose("n1", "n2")
}

// untouched returns what is at nodes at which nothing is to be written.
func (r *run) untouched(of map[string]string) map[string]string {
	list := map[string]string{}
	for name, is := range of {
		if !slices.Contains(r.kind.changed, int(name[1]-'0')) {
			list[name] = is
		}
	}
	return list
}

func must(args ...string) {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		fatal(fmt.Errorf("%s: %v: %s", strings.Join(args, " "), err, out))
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "powercut:", err)
		os.Exit(2)
	}
}
