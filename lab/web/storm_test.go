package web

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	requests = flag.Int("web.requests", 100, "requests of TestManyRequests")
	seed     = flag.Uint64("web.seed", 1, "of TestManyRequests")
)

// drawn returns a request of some method, with parameters that may be anything.
func drawn(r *rand.Rand) (path, body string) {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	number := func() string {
		return one("", "0", "-1", "x", "1e9", "1000000000", "9223372036854775807", "99999999999999999999", fmt.Sprint(r.IntN(64)), fmt.Sprint(r.IntN(64)), fmt.Sprint(r.IntN(1100)), "1024", "2048", "81")
	}
	method := one("plan", "plan", "cost", "sizes", "run", "run", "load", "catalog", "none")
	more, wild := "", r.IntN(3) == 0
	if !wild { // what there is to compute, small and as large as it may be
		number = func() string { return one("1", "4", "9", "16", "64", "81", "128", "256", "512", "1000", "1024") }
		if method == "run" {
			number = func() string { return one("4", "8", "9", "27", "64") }
		}
	}
	flags := []string{
		`"processors":"` + number() + `"`,
		`"matrix":"` + one("cauchy", "random:1", "dft", "lagrange", "vandermonde", "rs:jerasure", "fti", "file:/etc/passwd", "no") + `"`,
		`"field":"` + one("", "2^8", "2^16", "257", "65537", "goldilocks", "bn254", "3^4", "12", "2^99") + `"`,
	}
	if !wild {
		flags = []string{`"processors":"` + number() + `"`, one(`"matrix":"random:1","field":"bn254"`, `"matrix":"dft","field":"goldilocks"`, `"matrix":"lagrange","field":"65537"`, `"matrix":"random:1"`)}
	}
	for _, name := range []string{"sinks", "ports", "rounds-over", "max-memory", "max-compute"} {
		if r.IntN(3) == 0 && (wild || name == "ports" || r.IntN(4) == 0) {
			flags = append(flags, `"`+name+`":"`+number()+`"`)
		}
	}
	for _, name := range []string{"inverse", "separate", "whole"} {
		if r.IntN(8) == 0 {
			flags = append(flags, `"`+name+`":"true"`)
		}
	}
	for _, name := range []string{"size", "beta", "tau", "gamma"} {
		if r.IntN(8) == 0 {
			flags = append(flags, `"`+name+`":"`+one("0", "1us", "1h")+`"`)
		}
	}
	switch method {
	case "cost":
		more = `,"processors":"` + one("", "2..64", "1..512", "2048", "1000..1400", "0", number()) + `","only":"` + one("", "", "universal", "all") + `"`
	case "sizes":
		more = `,"from":"` + one("", "", "", "1KiB", "x") + `","to":"` + one("", "", "", "1GiB", "1EB") + `"`
	case "run":
		more = `,"size":"` + one("1KiB", "64KiB", "1MiB", "4MiB", "16MiB", "1TiB") + `","pace":"` + one("", "", "1ms", "1s", "1h") + `"`
	case "load":
		more = `,"name":"x","text":"` + one("", "{}", "[", `{\"rounds\":[`, strings.Repeat("[", 1<<20), strings.Repeat("1,", 1<<r.IntN(20))) + `"`
	case "catalog":
		return "/api/catalog", one("{}", "[]", "", `{"a":1}`)
	}
	return "/api/" + method, `{"flags":{` + strings.Join(flags, ",") + "}" + more + "}"
}

// TestManyRequests sends requests of all kinds, 50 at a time, and abandons many of them
// half-way: the heap stays within the budget, the page and a normal request are answered
// afterwards, and nothing goes on that nobody waits for.
func TestManyRequests(t *testing.T) {
	address := serve(t, bodyTime)
	const atOnce = 50
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	post := func(ctx context.Context, path, body string) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, "POST", "http://"+address+path+"?token="+secret, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		begin, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		if err == nil { // the rest would be memory of the test
			_, err = io.Copy(io.Discard, response.Body)
		}
		return response.StatusCode, string(begin), err
	}
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, uint64(0)
	over, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	next := make(chan uint64)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for n := range next {
				r := rand.New(rand.NewPCG(*seed, n))
				path, body := drawn(r)
				// Nobody waits longer than some seconds, and many far less.
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(400)*r.IntN(50))*time.Millisecond)
				status, answer, err := post(ctx, path, body)
				gone := ctx.Err() != nil
				cancel()
				switch {
				case gone:
					count("abandoned")
				case err != nil:
					t.Errorf("%d: %s %.500s: %v", n, path, body, err)
				case status == http.StatusServiceUnavailable:
					count("busy")
				case status != http.StatusOK || strings.Contains(answer, "fault of the program"):
					t.Errorf("%d: %s %.500s: %d: %.1000s", n, path, body, status, answer)
				case strings.Contains(answer, `{"error"`):
					count("refused")
				default:
					count("answered")
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
	for {
		stacks := make([]byte, 16<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; !left.Match(stacks) {
			break
		}
		time.Sleep(10 * time.Millisecond) // until the test's time is over
	}
	close(over)
	<-looked
	high := ""
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		high = regexp.MustCompile(`VmHWM:\s+(.*)`).FindString(string(status))
	}
	t.Logf("%v, a heap of %d MiB at most; %s", counts, (peak-before)>>20, high)
	if peak-before > Budget {
		t.Errorf("the heap had %d MiB, and the budget is %d", (peak-before)>>20, Budget>>20)
	}
	for _, what := range []string{"abandoned", "refused", "answered"} {
		if counts[what] == 0 {
			t.Errorf("no request was %s: they are not of all kinds", what)
		}
	}
	if status, answer, err := post(t.Context(), "/api/plan", `{"flags":{"processors":"8"}}`); status != http.StatusOK || !strings.Contains(answer, `{"result"`) {
		t.Errorf("a normal request: %d, %v: %.300s", status, err, answer)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Jar = jar
	if page, err := client.Get("http://" + address + "/?token=" + secret); err != nil || page.StatusCode != http.StatusOK {
		t.Errorf("the page: %v, %v", page, err)
	}
}
