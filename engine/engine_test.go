package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/tcp"
	"volley/transport/transporttest"
)

// short is how long those are waited for that do not come.
const short = 30 * time.Millisecond

// joinAll starts ranks, which meet at rank 0, and returns their endpoints and errors.
func joinAll(t testing.TB, limit time.Duration, runs ...Run) ([]*tcp.Endpoint, []error) {
	ends, errs := make([]*tcp.Endpoint, len(runs)), make([]error, len(runs))
	var all sync.WaitGroup
	for i, run := range runs {
		all.Go(func() {
			p, err := Listen(run)
			if err == nil {
				t.Cleanup(func() { p.Close() })
				ends[i], err = p.Join(t.Context(), nil, limit)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return ends, errs
}

func runsOf(n int, meet string, secret Secret) (runs []Run) {
	for r := range n {
		runs = append(runs, Run{Rank: r, Size: n, Meet: meet, Secret: secret})
	}
	return runs
}

func TestTransportWithSecret(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		secret := NewSecret()
		listeners, table := make([]*Listener, n), make([]string, n)
		for r := range n {
			var err error
			limits := tcp.Patience{Close: transporttest.Limit} // many ranks of one process are late to read
			if listeners[r], err = Listen(Run{Rank: r, Size: n, Secret: secret, Limits: limits}); err != nil {
				t.Fatal(err)
			}
			table[r] = listeners[r].Address()
		}
		all := make([]transport.Transport, n)
		for r, p := range listeners {
			e, err := p.Join(t.Context(), table, 0)
			must(t, err)
			all[r] = joined{e, p}
		}
		return all
	})
}

// TestJoin has ranks join in one call, and one that has no meeting point.
func TestJoin(t *testing.T) {
	t.Parallel()
	runs := runsOf(3, transporttest.Free(t), NewSecret())
	var all sync.WaitGroup
	for r, run := range runs {
		all.Go(func() {
			run.Timeout = transporttest.Limit
			e, err := Join(t.Context(), run)
			if err != nil {
				t.Error(err)
				return
			}
			if err := transporttest.Cases()[0].Run(t.Context(), e); err != nil || e.Rank() != r || e.Size() != len(runs) {
				t.Errorf("rank %d of %d: %v; want %d of %d", e.Rank(), e.Size(), err, r, len(runs))
			}
			if r > 0 {
				return
			}
			if c, err := net.Dial("tcp", run.Meet); err == nil {
				c.Close()
				t.Error("rank 0 listens after Close")
			}
		})
	}
	all.Wait()
	if _, err := Join(t.Context(), Run{Size: 2, Meet: runs[0].Meet, Timeout: -1}); err == nil || !strings.Contains(err.Error(), "timeout -1ns: want 0 or more") {
		t.Error(err)
	}
	if _, err := Join(t.Context(), Run{Size: 2, Meet: transporttest.Free(t), Timeout: short}); err == nil || !strings.Contains(err.Error(), "within 30ms: 1") {
		t.Error(err)
	}
	if _, err := Join(t.Context(), Run{Size: 2, Secret: NewSecret()}); !errors.As(err, new(*tcp.InputError)) || !strings.Contains(err.Error(), "no meeting point") {
		t.Error(err)
	}
}

// Where the ranks contradict each other all of them say so.
func TestContradictions(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	for name, c := range map[string]struct {
		change func(runs []Run)
		want   string
	}{
		"a rank twice":    {func(runs []Run) { runs[2].Rank = 1 }, "two processes are rank 1"},
		"another size":    {func(runs []Run) { runs[2].Size = 4 }, "rank 2 of 4"},
		"a rank too many": {func(runs []Run) { runs[2].Rank, runs[2].Size = 3, 4 }, "rank 3 of 4"},
		"a rank missing":  {func(runs []Run) { runs[2].Meet = "127.0.0.1:1" }, "rank 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, limit := runsOf(3, transporttest.Free(t), secret), transporttest.Limit
			if c.change(runs); name == "a rank missing" {
				limit, runs[1].Limits.Answer, runs[2].Limits.Answer = short, transporttest.Limit, short
			}
			_, errs := joinAll(t, limit, runs...)
			for i, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("process %d: %v; want %q", i, err, c.want)
				}
				if input := errors.As(err, new(*tcp.InputError)); input != (name != "a rank missing") {
					t.Errorf("process %d: %v: bad input: %v", i, err, input)
				}
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, run := range []Run{
		{Bind: "0.0.0.0"}, {Bind: "::"}, {Meet: "192.0.2.1:7000"}, {Advertise: "node3"},
	} {
		run.Rank, run.Size = 1, 2
		p, err := Listen(run)
		if !errors.Is(err, ErrOpen) {
			t.Errorf("%+v: %v", run, err)
		}
		if p != nil {
			p.Close()
		}
	}
}

func TestSecretIsNotShown(t *testing.T) {
	t.Parallel()
	s := NewSecret()
	text, err := s.MarshalText()
	if err != nil || len(text) != 64 {
		t.Fatal(len(text), err)
	}
	run := Run{Size: 1, Secret: s}
	shown := fmt.Sprintf("%v %+v %#v %v %s %x %d", run, run, run, s, s, s, s)
	if strings.Contains(strings.ToLower(shown), string(text[:8])) || strings.Contains(shown, fmt.Sprint(s.bytes[0], s.bytes[1], s.bytes[2])) {
		t.Errorf("shown in %s", shown)
	}
	child, err := json.Marshal(run)
	var back Run
	if err != nil || json.Unmarshal(child, &back) != nil || back != run {
		t.Errorf("%+v: %v", back, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("0", 64), string(text) + "0", strings.Repeat("g", 64)} {
		if err := new(Secret).UnmarshalText([]byte(bad)); err == nil || len(bad) > 2 && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSlurm(t *testing.T) {
	t.Parallel()
	step := map[string]string{"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2", "SLURM_STEP_NODELIST": "volley[0-2]", "SLURM_JOB_ID": "65", "SLURM_STEP_ID": "0"}
	run, ok, err := Slurm(func(name string) string { return step[name] }, Ports{7000, 7063})
	if !ok || err != nil || run.Rank != 2 || run.Size != 3 || run.Meet != "volley0:7001" {
		t.Errorf("%+v, %v, %v", run, ok, err)
	}
	step["SLURM_DISTRIBUTION"] = "arbitrary"
	if run, ok, err := Slurm(func(name string) string { return step[name] }, Ports{7000, 7063}); !ok || err != nil || run.Rank != 2 || run.Meet != "" {
		t.Errorf("task 0 anywhere: %+v, %v, %v", run, ok, err)
	}
	step["SLURM_PROCID"] = "3"
	if _, ok, err := Slurm(func(name string) string { return step[name] }, Ports{7000, 7063}); ok || err == nil {
		t.Error("task 3 of 3")
	}
	if _, ok, err := Slurm(func(string) string { return "" }, Ports{7000, 7063}); ok || err != nil {
		t.Error(err)
	}
}

func TestFirstHost(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"volley[0-2]": "volley0", "a1": "a1", "a1,b2": "a1", "n[003-010]x,y": "n003x", "rack[1-2]node[03-05,9],z": "rack1node03",
		"n[7,9-11]": "n7", "10.0.0.1": "10.0.0.1", "": "", "n[": "", "n[a-b]": "", "[]": "", "n,": "n", ",": "", "n m": "", "n[1]/": "",
	} {
		if got, err := firstHost(list); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", list, got, err, want)
		}
	}
}

func FuzzFirstHost(f *testing.F) {
	f.Add("rack[1-2]node[03-05,9],login")
	f.Fuzz(func(t *testing.T, list string) {
		host, err := firstHost(list)
		if (err == nil) != (host != "") || strings.ContainsAny(host, "[],: /\x00") {
			t.Errorf("%q: %q, %v", list, host, err)
		}
	})
}

func TestPorts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Ports{"7000-7063": {7000, 7063}, "7000": {7000, 7000}, "": {}} {
		if got, err := portsOf(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"x", "0", "7-6", "1-65536", "1-", "-1", "1-2-3"} {
		if _, err := portsOf(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestOnePort has hosts that let one port through, that of the meeting point.
func TestOnePort(t *testing.T) {
	t.Parallel()
	meet := transporttest.Free(t)
	_, text, _ := net.SplitHostPort(meet)
	ports, err := portsOf(text)
	must(t, err)
	run := Run{Rank: 1, Size: 2, Meet: meet, Bind: "127.0.0.1", Ports: ports}
	p, err := Listen(run)
	must(t, err)
	defer p.Close()
	if p.Address() != meet {
		t.Errorf("listens at %s, want %s", p.Address(), meet)
	}
	if _, err := Listen(run); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("where it is taken: %v", err)
	}
}

// ring sends a byte to the next rank, and returns that of the one before. After an error the transfers may be under way.
func ring(t *testing.T, e *tcp.Endpoint, round int, own byte) (theirs byte, err error) {
	n, tag, q, got := e.Size(), transport.Tag{Round: round}, e.NewQueue(), []byte{0}
	q.Post(&transport.Transfer{Rank: (e.Rank() + 1) % n, Tag: tag, Parts: [][]byte{{own}}}, &transport.Transfer{Rank: (e.Rank() + n - 1) % n, Tag: tag, Parts: [][]byte{got}, Receive: true})
	for range 2 {
		if _, err := q.Wait(t.Context()); err != nil {
			return 0, err
		}
	}
	return got[0], nil
}

// TestPlaceSets cuts ranks into two sets. One of a set dies, and others of it hear so; the other set goes on, and all
// that live meet at the end, at the rank that is the first now.
func TestPlaceSets(t *testing.T) {
	t.Parallel()
	sets := [][]int{{5, 3, 1}, {4, 2, 0}}
	secret, meet := NewSecret(), transporttest.Free(t)
	var ranks, alive, dead sync.WaitGroup
	alive.Add(6)
	dead.Add(1)
	place := func(r int) {
		run := Run{Rank: r, Size: 6, Meet: meet, Secret: secret}
		if r == 3 { // which dies
			run.Limits.Close = time.Nanosecond
		}
		p, err := Listen(run)
		if err != nil {
			t.Error(err)
			return
		}
		defer p.Close()
		p.Says = []byte{byte(r)}
		p.Sets = func(said [][]byte) [][]int {
			if len(said) != 6 || said[r][0] != byte(r) {
				t.Errorf("rank %d: said %q", r, said)
			}
			return sets
		}
		e, err := p.Join(t.Context(), nil, transporttest.Limit)
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		set, place := p.Rank()/3, p.Rank()%3
		if e.Size() != 3 || e.Rank() != place || sets[set][place] != r {
			t.Errorf("rank %d is %d of %d, in set %d", r, e.Rank(), e.Size(), set)
		}
		if heard, err := ring(t, e, 0, byte(r)); err != nil || int(heard) != sets[set][(place+2)%3] {
			t.Errorf("rank %d heard %d, %v", r, heard, err)
		}
		alive.Done()
		if r == 3 {
			alive.Wait()
			p.listener.Close() // as if it were killed
			dead.Done()
			return
		}
		dead.Wait()
		if _, err := ring(t, e, 1, byte(r)); (err != nil) != (r == 1) && r != 5 { // which only sends to it
			t.Errorf("rank %d, after one has died: %v", r, err)
		}
		said, err := p.Gather(t.Context(), "end", []byte{byte(r)}, transporttest.Limit)
		if err == nil || !strings.HasSuffix(err.Error(), ": 1") || len(said) != 6 {
			t.Errorf("rank %d: %q, %v", r, said, err)
			return
		}
		for i, text := range said {
			if x := sets[i/3][i%3]; x != 3 && string(text) != string([]byte{byte(x)}) {
				t.Errorf("rank %d: %d said %q", r, x, text)
			}
		}
	}
	for r := range 6 {
		ranks.Go(func() { place(r) })
	}
	ranks.Wait()
}

func portsOf(text string) (p Ports, err error) {
	err = p.UnmarshalText([]byte(text))
	return p, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
