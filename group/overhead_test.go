package group_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"volley/group"
	"volley/internal/verifyall"
	"volley/transport"
	"volley/transport/local"
)

// counted counts the bytes that a rank sends.
type counted struct {
	transport.Transport
	sent atomic.Int64
}

func (t *counted) NewQueue() transport.Queue { return &countedQueue{t.Transport.NewQueue(), t} }

type countedQueue struct {
	transport.Queue
	of *counted
}

func (q *countedQueue) Post(list ...*transport.Transfer) {
	for _, x := range list {
		if !x.Receive {
			q.of.sent.Add(int64(x.Bytes()))
		}
	}
	q.Queue.Post(list...)
}

// TestOverhead counts what protect stores and sends beside data and parity: at most 1 % of 16 MiB
// a node.
func TestOverhead(t *testing.T) {
	const data = 16 << 20
	for _, k := range []int{8, verifyall.Most(16, 64)} {
		for _, layout := range []string{group.Full, group.Striped} {
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
					reports[r], errs[r] = group.Protect(context.Background(), ts[r], dirs[r:][:1], group.ProtectOptions{Tolerate: 2, Layout: layout})
				})
			}
			wg.Wait()
			var sent, stored int64
			for r := range k {
				must(t, errs[r])
				sent = max(sent, counts[r].sent.Load()-reports[r].Traffic.MostSent)
				all := int64(0)
				must(t, filepath.WalkDir(filepath.Join(dirs[r], ".volley"), func(path string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), "parity.") {
						var info fs.FileInfo
						info, err = d.Info()
						all += info.Size()
					}
					return err
				}))
				stored = max(stored, all)
			}
			t.Logf("K = %d, %s: %d bytes stored beside parity, %d sent beside %d, RecordBytes %d", k, layout, stored, sent, reports[0].Traffic.MostSent, reports[0].RecordBytes)
			if stored > data/100 || sent > data/100 {
				t.Errorf("K = %d, %s: %d bytes stored beside parity, and %d sent beside %d", k, layout, stored, sent, reports[0].Traffic.MostSent)
			}
			must(t, os.RemoveAll(base))
		}
	}
}
