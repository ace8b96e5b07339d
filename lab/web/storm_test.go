package web

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	requests = flag.Int("web.requests", 100, "requests of TestManyRequests")
	seed     = flag.Uint64("web.seed", 1, "of TestManyRequests")
)

// drawn returns a request: as large as it may be, small, or wrong.
func drawn(r *rand.Rand) (path, body string) {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	flags := `{"flags":{"processors":"` + one("1", "4", "16", "64", "81", "256", "1000", "1024", "99999999999999999999") + `",` +
		one(`"matrix":"random:1","field":"bn254"`, `"matrix":"dft","field":"goldilocks"`, `"matrix":"lagrange","field":"65537"`, `"matrix":"random:1"`, `"matrix":"no"`) +
		one("", "", `,"ports":"2"`, `,"ports":"1000"`, `,"sinks":"1000000000"`, `,"inverse":"true"`, `,"max-memory":"20"`) + "}"
	switch method := one("plan", "cost", "sizes", "run", "run", "load", "none"); method {
	case "cost":
		return "/api/cost", flags + `,"processors":"` + one("2..64", "1..512", "2048", "1000..1400", "0") + `"}`
	case "run":
		return "/api/run", flags + `,"size":"` + one("1KiB", "1MiB", "16MiB", "1TiB") + `","pace":"` + one("", "1ms", "1s", "1h") + `"}`
	case "load":
		return "/api/load", flags + `,"name":"x","text":"` + one("", "{}", strings.Repeat("[", 1<<20), strings.Repeat("1,", 1<<r.IntN(20))) + `"}`
	default:
		return "/api/" + method, flags + "}"
	}
}

// TestManyRequests sends requests of all kinds, 50 at a time, and abandons many of them half-way: the heap stays within
// the budget, a normal request is answered afterwards, and nothing goes on that nobody waits for.
func TestManyRequests(t *testing.T) {
	address := serve(t, bodyTime)
	const atOnce = 50
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	post := func(ctx context.Context, path, body string) (status int, begin string) {
		request, err := http.NewRequestWithContext(ctx, "POST", "http://"+address+path+"?token="+secret, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // more would be memory of the test
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
		}
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(text)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, peak := heap(), uint64(0)
	over, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			peak = max(peak, heap())
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	var abandoned, refused, answered atomic.Int64
	next := make(chan uint64)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for n := range next {
				r := rand.New(rand.NewPCG(*seed, n))
				path, body := drawn(r)
				// Nobody waits longer than some seconds, and many far less.
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(400)*r.IntN(50))*time.Millisecond)
				status, answer := post(ctx, path, body)
				gone := ctx.Err() != nil
				cancel()
				switch {
				case gone:
					abandoned.Add(1)
				case status == http.StatusServiceUnavailable:
				case status != http.StatusOK || strings.Contains(answer, "fault of the program"):
					t.Errorf("%d: %s %.500s: %d: %.1000s", n, path, body, status, answer)
				case strings.Contains(answer, `{"error"`):
					refused.Add(1)
				default:
					answered.Add(1)
				}
			}
		})
	}
	for n := range *requests {
		next <- uint64(n)
	}
	close(next)
	all.Wait()
	left := regexp.MustCompile(`volley/(lab/explore|algo|executor|matrix)\.`)
	for stacks := make([]byte, 16<<20); left.Match(stacks[:runtime.Stack(stacks, true)]); {
		time.Sleep(10 * time.Millisecond) // until the test's time is over
	}
	close(over)
	<-looked
	t.Logf("%d abandoned, %d refused, %d answered, a heap of %d MiB at most", abandoned.Load(), refused.Load(), answered.Load(), (peak-before)>>20)
	if peak > before+Budget || abandoned.Load() == 0 || refused.Load() == 0 || answered.Load() == 0 {
		t.Errorf("the budget is %d MiB, and there are requests of all three kinds", Budget>>20)
	}
	if status, answer := post(t.Context(), "/api/plan", `{"flags":{"processors":"8"}}`); status != http.StatusOK || !strings.Contains(answer, `{"result"`) {
		t.Errorf("a normal request: %d: %.300s", status, answer)
	}
}
