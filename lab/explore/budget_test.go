package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/race"
)

// peakOf returns how much the heap grows while f runs, what is not yet collected included.
func peakOf(f func()) int64 {
	// As HeapAlloc of runtime.MemStats, for which the world would stop.
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := heap()
	peak := before
	done, seen := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(seen)
		for {
			peak = max(peak, heap())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-seen
	return int64(peak) - int64(before)
}

// What a file may take of the heap: so much, and so many bytes for each of its own.
const (
	baseBytes  = 24 << 20
	loadFactor = 24
)

// TestShares compares what requests have of the budget with what the heap then has.
func TestShares(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has memory of its own")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // garbage is the collector's affair, and grows with the machine's cores
	text := func(s string) string { return `{"name":"x","flags":{},"text":` + quotedJSON(s) + "}" }
	for _, c := range []struct{ method, request string }{
		{"plan", `{"flags":{"processors":"1","matrix":"random:1"}}`},
		{"plan", `{"flags":{"processors":"81","matrix":"random:1","field":"bn254","algorithm":"bruck-allgather"}}`},
		{"plan", `{"flags":{"processors":"81","algorithm":"exchange:81","model":"network"}}`},
		{"plan", `{"flags":{"processors":"1024","matrix":"random:1","algorithm":"bruck-allgather"}}`},
		{"plan", `{"flags":{"processors":"256","matrix":"random:1","field":"bn254","inverse":"true","algorithm":"bruck-allgather"}}`},
		{"cost", `{"flags":{"matrix":"dft","field":"goldilocks"},"processors":"2048"}`},
		{"cost", `{"flags":{"matrix":"cauchy","field":"2^16","max-memory":"100000"},"processors":"500..504"}`},
		{"protect", `{"nodes":64,"tolerate":32,"size":"1PiB","lost":[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54,56,58,60,62]}`},
		{"load", text(planText(t))},
		{"load", text(strings.Repeat("[", 1<<20))},
		{"load", text("[" + strings.Repeat("1,", 1<<20) + "1]")},
	} {
		var answer counter
		share := shares[c.method]
		if c.method == "load" {
			share = baseBytes + loadFactor*int64(len(c.request))
		}
		peak := peakOf(func() {
			request := must(io.ReadAll(strings.NewReader(c.request)))(t) // as the server does
			if _, err := Answer(t.Context(), c.method, request, &answer); err != nil {
				t.Error(err)
			}
		})
		text := fmt.Sprintf("%s %.110s: %d KiB on the heap, a share of %d, an answer of %d", c.method, c.request, peak>>10, share>>10, answer)
		if t.Log(text); peak > share {
			t.Error(text)
		}
	}
	if shares["load"] < baseBytes+loadFactor*mostBytes {
		t.Error("the share of a file is too small for the largest")
	}
}

type counter int

func (n *counter) Write(data []byte) (int, error) {
	*n += counter(len(data))
	return len(data), nil
}

func quotedJSON(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestBusy checks that a request waits a while for its share, and is then told so.
func TestBusy(t *testing.T) {
	for method, share := range shares {
		synctest.Test(t, func(t *testing.T) {
			if err := memory.Acquire(t.Context(), Budget-share+1); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, _, err := Admit(t.Context(), method); !errors.Is(err, ErrBusy) || time.Since(start) != patience {
				t.Errorf("%s: %v after %v", method, err, time.Since(start))
			}
			if _, release, err := Admit(t.Context(), "catalog"); err != nil {
				t.Errorf("the catalogue: %v", err)
			} else {
				release()
			}
			memory.Release(1)
			_, release, err := Admit(t.Context(), method)
			if err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			release()
			memory.Release(Budget - share)
		})
	}
	if !memory.TryAcquire(Budget) {
		t.Fatal("some of the budget is not given back")
	}
	memory.Release(Budget)
}

// A fuse is a context that ends when it has been asked so many times.
type fuse struct {
	context.Context
	left atomic.Int64
}

func (f *fuse) Err() error {
	if f.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestAbandoned checks that computing ends with its context: these took minutes, and each
// is abandoned after having looked at it some times.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, request string }{
		{"plan", `{"flags":{"processors":"1024","matrix":"dft","field":"goldilocks","ports":"1000"}}`},
		{"plan", `{"flags":{"processors":"1024","matrix":"random:1","gamma":"1ns"}}`},
		{"cost", `{"flags":{"matrix":"dft","field":"goldilocks","ports":"1000"},"processors":"1024,512,2048"}`},
		{"plan", `{"flags":{"processors":"81","matrix":"random:1","algorithm":"bruck-allgather"}}`},
	} {
		for _, after := range []int64{0, 20} {
			ctx := &fuse{Context: t.Context()}
			ctx.left.Store(after)
			var b strings.Builder
			ok, err := Answer(ctx, c.method, []byte(c.request), &b)
			if ok || err != nil || !strings.Contains(b.String(), context.Canceled.Error()) {
				t.Errorf("%s %s, after %d: %v, %v: %.200s", c.method, c.request, after, ok, err, b.String())
			}
		}
	}
}

// TestNumbers checks that what the page gets is JSON where costs are beyond all numbers.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"plan", "cost"} {
		if _, fault := ask[any](t, method, `{"flags":{"processors":"64","size":"1PiB","tau":"1h","beta":"1h","gamma":"1h"}}`); fault != nil {
			t.Errorf("%s: %+v", method, fault)
		}
	}
}
