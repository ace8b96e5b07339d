package group_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"

	"volley/group"
	"volley/group/protection"
	"volley/internal/verifyall"
	"volley/transport"
	"volley/transport/local"
)

// counted counts the bytes that a rank sends.
type counted struct {
	transport.Transport
	sent     atomic.Int64
	messages atomic.Int64 // of collectives
	host     *transport.Host
}

func (t *counted) Host() *transport.Host { return t.host }

func (t *counted) NewQueue() transport.Queue { return &countedQueue{t.Transport.NewQueue(), t} }

type countedQueue struct {
	transport.Queue
	of *counted
}

func (q *countedQueue) Post(list ...*transport.Transfer) {
	for _, x := range list {
		if !x.Receive {
			q.of.sent.Add(int64(x.Bytes()))
			if x.Tag.Round < transport.ControlRounds {
				q.of.messages.Add(1)
			}
		}
	}
	q.Queue.Post(list...)
}

// TestOverhead counts what protect stores and sends beside data and parity: at most 1 % of 16 MiB
// a node.
func TestOverhead(t *testing.T) {
	t.Parallel()
	const data = 16 << 20
	k := verifyall.Pick(16, 64) // fewer nodes have less beside parity, or far less than the bound
	base := t.TempDir()
	var dirs []string
	var ts []transport.Transport
	var counts []*counted
	for n, end := range local.New(k) {
		dirs = append(dirs, filepath.Join(base, fmt.Sprint("n", n)))
		must(t, os.Mkdir(dirs[n], 0o700))
		content := make([]byte, data)
		rand.NewChaCha8([32]byte{byte(n)}).Read(content)
		must(t, os.WriteFile(filepath.Join(dirs[n], "file"), content, 0o600))
		c := &counted{Transport: end}
		counts, ts = append(counts, c), append(ts, c)
	}
	reports, errs := make([]*group.ProtectReport, k), make([]error, k)
	var wg sync.WaitGroup
	for r := range k {
		wg.Go(func() {
			reports[r], errs[r] = group.Join(ts[r], dirs[r:][:1], protection.Settings{}).Protect(context.Background(), group.ProtectOptions{Tolerate: 2})
		})
	}
	wg.Wait()
	var sent, stored int64
	for r := range k {
		must(t, errs[r])
		sent = max(sent, counts[r].sent.Load()-reports[r].Traffic.MostSent)
		all := int64(0)
		must(t, filepath.WalkDir(filepath.Join(dirs[r], ".volley"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && d.Name() != "parity" {
				var info fs.FileInfo
				info, err = d.Info()
				all += info.Size()
			}
			return err
		}))
		stored = max(stored, all)
	}
	t.Logf("K = %d: %d bytes stored beside parity, %d sent beside %d, RecordBytes %d", k, stored, sent, reports[0].Traffic.MostSent, reports[0].RecordBytes)
	if stored > data/100 || sent > data/100 {
		t.Errorf("K = %d: %d bytes stored beside parity, and %d sent beside %d", k, stored, sent, reports[0].Traffic.MostSent)
	}
	must(t, os.RemoveAll(base))
}

// TestTogether protects and recovers at ranks of one host, which share memory: no block goes by a message. Where they cannot
// share it they send blocks, and get the same.
func TestTogether(t *testing.T) {
	t.Parallel()
	const k, data = 4, 3 << 20
	for _, unshared := range []error{nil, errors.New("no memory")} {
		dirs := trees(t, k, 1, 1, 1)
		for n, dir := range dirs {
			content := make([]byte, data)
			rand.NewChaCha8([32]byte{byte(n)}).Read(content)
			must(t, os.WriteFile(filepath.Join(dir, "long"), content, 0o600))
		}
		var sent [k]*counted
		every := func(verb func(g *group.Group) error) {
			t.Helper()
			var workers errgroup.Group
			for r, end := range local.NewHosts(k) {
				end.Host().Unshared = unshared
				sent[r] = &counted{Transport: end, host: end.Host()}
				workers.Go(func() error {
					defer end.Close()
					return verb(group.Join(sent[r], dirs[r:][:1], options))
				})
			}
			must(t, workers.Wait())
			for _, c := range sent {
				if n := c.sent.Load(); unshared == nil && n > data/50 || unshared != nil && n < data/2 {
					t.Errorf("unshared %v: a rank sends %d bytes of %d", unshared, n, data)
				}
			}
		}
		every(func(g *group.Group) error {
			_, err := g.Protect(t.Context(), group.ProtectOptions{Tolerate: 2})
			return err
		})
		whole := listing(t, dirs[1])
		lose(t, dirs, []int{1, 2})
		every(func(g *group.Group) error {
			_, err := g.Recover(t.Context(), group.RecoverOptions{})
			return err
		})
		compare(t, "recovered", []string{whole}, []string{listing(t, dirs[1])})
	}
}

// TestCollectives counts how often ranks wait for all others besides the coding: on a network each time costs some
// latencies. Of 8 ranks each sends the others one message then.
func TestCollectives(t *testing.T) {
	t.Parallel()
	const k = 8
	dirs := trees(t, k, 3, 20_000, 1)
	o := protection.Settings{Names: []string{"a"}} // whatever the length of a temporary directory's is
	count := func(run func(ctx context.Context, tr transport.Transport, dir string) error) (collectives int64) {
		synctest.Test(t, func(t *testing.T) { // where no rank takes so long that it has to say that it is alive
			var counts [k]*counted
			must(t, local.Run(t.Context(), k, func(ctx context.Context, tr transport.Transport) error {
				counts[tr.Rank()] = &counted{Transport: tr}
				return run(ctx, counts[tr.Rank()], dirs[tr.Rank()])
			}))
			for _, c := range counts {
				collectives = max(collectives, c.messages.Load()/(k-1))
			}
		})
		return collectives
	}
	for _, c := range []struct {
		name string
		most int64
		run  func(ctx context.Context, tr transport.Transport, dir string) error
	}{
		{"protect", 15, func(ctx context.Context, tr transport.Transport, dir string) error {
			_, err := group.Join(tr, []string{dir}, o).Protect(ctx, group.ProtectOptions{Tolerate: 1})
			return err
		}},
		{"recover", 14, func(ctx context.Context, tr transport.Transport, dir string) error {
			if tr.Rank() == 1 {
				must(t, os.RemoveAll(dir))
			}
			_, err := group.Join(tr, []string{dir}, o).Recover(ctx, group.RecoverOptions{})
			return err
		}},
		{"verify", 6, func(ctx context.Context, tr transport.Transport, dir string) error {
			_, err := group.Join(tr, []string{dir}, o).Verify(ctx, group.VerifyOptions{})
			return err
		}},
	} {
		if n := count(c.run); n != c.most {
			t.Errorf("%s: %d collectives, want %d", c.name, n, c.most)
		}
	}
}
