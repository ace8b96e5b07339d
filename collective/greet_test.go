package collective

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/fuzzlimit"
	"volley/transport"
	"volley/transport/local"
)

const Version = "0.2.0"

func greet(ctx context.Context, tr transport.Transport, verb string) error {
	_, err := New(tr, time.Minute).Greet(ctx, Greeting{Verb: verb, Version: Version}, nil)
	return err
}

// ranks runs f at all ranks of a group and returns the errors, which come without a timeout.
func ranks(t *testing.T, n int, f func(context.Context, transport.Transport) error) []error {
	t.Helper()
	errs := make([]error, n)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
			errs[tr.Rank()] = f(ctx, tr)
			return nil
		})
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
	return errs
}

// altered is a rank whose greeting is another one. Only who greets as volley does waits for the
// others to find that out.
func altered(ctx context.Context, tr transport.Transport, record []byte, volley bool) error {
	c := New(tr, time.Minute)
	if len(record) == helloBytes {
		words := make([]uint64, greetingWords)
		words[0], words[1] = 1, ^uint64(1)
		if err := c.largest(ctx, words); err != nil {
			return err
		}
	}
	_, err := c.Allgather(ctx, record)
	if err == nil && volley {
		err = c.Barrier(ctx)
	}
	return err
}

// another returns a greeting of another version.
func another(verb, version string, protocol uint32) []byte {
	h := hello{Magic: helloMagic, Protocol: protocol}
	copy(h.Verb[:], verb)
	copy(h.Version[:], version)
	record, _ := binary.Append(nil, binary.LittleEndian, h)
	sum := digest(record[:helloBytes-8])
	return append(record[:helloBytes-8], sum[:]...)
}

// TestGreet lets one rank be of another verb, version or protocol, or no volley at all: the
// others name it, all alike and at once.
func TestGreet(t *testing.T) {
	t.Parallel()
	garbage := bytes.Repeat([]byte("\x1b[31m"), helloBytes)[:helloBytes]
	for _, c := range []struct {
		name   string
		record []byte
		want   string
	}{
		{"verb", another("protect", Version, Protocol), "volley: rank 2 runs protect, rank 0 runs encode: run the same at all ranks"},
		{"version", another("encode", "9.9.9", Protocol), "volley: rank 2 runs volley 9.9.9, rank 0 runs volley " + Version + ": install the same version at all ranks"},
		{"version first", another("protect", "9.9.9", Protocol), "volley: rank 2 runs volley 9.9.9, rank 0 runs volley " + Version + ": install the same version at all ranks"},
		{"protocol", another("encode", Version, 77), fmt.Sprintf("volley: rank 2 runs volley %s with protocol 77, rank 0 runs volley %s with protocol %d: install the same version at all ranks", Version, Version, Protocol)},
		{"garbage", garbage, `volley: rank 2 does not greet as volley does, but with "\x1b[31m\x1b[3": start the same program at all ranks`},
		{"an old version", make([]byte, 8), "volley: rank 2 does not greet as volley does: another program or an old version runs there: start the same one at all ranks"},
	} {
		for _, n := range []int{3, 5, 17, 130} {
			named := 0
			for r, err := range ranks(t, n, func(ctx context.Context, tr transport.Transport) error {
				if tr.Rank() == 2 {
					return altered(ctx, tr, c.record, bytes.HasPrefix(c.record, helloMagic[:]))
				}
				err := greet(ctx, tr, "encode")
				if err != nil {
					tr.Abort(err)
				}
				return err
			}) {
				switch aborted := errors.As(err, new(*transport.AbortError)); {
				case r == 2:
				case err == nil:
					t.Errorf("%s: rank %d of %d noticed nothing", c.name, r, n)
				case err.Error() == c.want && errors.As(err, new(*PeerError)):
					named++
				case !aborted || !strings.Contains(err.Error(), "rank 2"):
					t.Errorf("%s: rank %d of %d: %v; want %s", c.name, r, n, err, c.want)
				}
			}
			if named == 0 && len(c.record) == helloBytes { // else rank 2 finds out first
				t.Errorf("%s: nobody of %d names rank 2", c.name, n)
			}
		}
	}
}

// TestGreetTexts names many ranks, and the hosts of ranks where they are fit to print.
func TestGreetTexts(t *testing.T) {
	t.Parallel()
	versions := func(terms []Term, last string) func(rank int) Greeting {
		return func(rank int) Greeting {
			return Greeting{
				Verb: "protect", Version: []string{"0.3.0-dev+ga", "0.3.0-dev+ga", "0.3.0-dev+gb"}[rank], Terms: terms,
				Host: []string{"h0", "h1", last}[rank],
			}
		}
	}
	for _, c := range []struct {
		n        int
		greeting func(rank int) Greeting
		want     string
	}{
		{
			20, func(rank int) Greeting {
				return Greeting{Verb: []string{"verify", "encode", "encode", "protect"}[min(rank, 9)/3], Version: Version}
			},
			"volley: ranks 0, 1, 2 run verify, ranks 3, 4, 5, 6, 7, 8 run encode, rank 9 runs protect: run the same at all ranks",
		},
		{3, versions(nil, "h2"), "volley: rank 2 (h2) runs volley 0.3.0-dev+gb, rank 0 (h0) runs volley 0.3.0-dev+ga: install the same version at all ranks"},
		{3, versions(nil, "a\nb"), "volley: rank 2 runs volley 0.3.0-dev+gb, rank 0 (h0) runs volley 0.3.0-dev+ga: install the same version at all ranks"},
		{3, versions([]Term{{"bytes", "1"}}, "h2"), "volley: rank 2 (h2) runs volley 0.3.0-dev+gb, rank 0 (h0) runs volley 0.3.0-dev+ga: install the same version at all ranks"},
	} {
		for r, err := range ranks(t, c.n, func(ctx context.Context, tr transport.Transport) error {
			_, err := New(tr, time.Minute).Greet(ctx, c.greeting(tr.Rank()), nil)
			return err
		}) {
			if err == nil || err.Error() != c.want {
				t.Errorf("rank %d: %v, want %s", r, err, c.want)
			}
		}
	}
}

// TestGreetForm keeps the form of greetings, which other versions rely on.
func TestGreetForm(t *testing.T) {
	t.Parallel()
	record := sealed(&Greeting{Verb: "encode", Version: Version, Host: "h0"})
	want := "volley\r\n" + "\x14\x00\x00\x00" + "encode" + strings.Repeat("\x00", 14) + Version + strings.Repeat("\x00", 32-len(Version)) + "h0" + strings.Repeat("\x00", 182)
	sum := sha256.Sum256([]byte(want))
	if want += string(sum[:8]); string(record) != want {
		t.Errorf("got %q, want %q", record, want)
	}
}

// collect does all collectives at a rank of n, and compares: the largest of each word, the records of all, short and long, and sums.
func collect(ctx context.Context, tr transport.Transport, c *Comm) error {
	n, r := tr.Size(), tr.Rank()
	rounds := 0
	for reach := 1; reach < n; reach *= radix {
		rounds++
	}
	own, err := c.Greet(ctx, Greeting{Verb: "encode", Version: Version, Terms: []Term{{"bytes", "1"}}, Words: []uint64{uint64(r), uint64(n - r), 0}}, func([]uint64) string { return "" })
	if want := []uint64{uint64(n) - 1, uint64(n), 0}; err != nil || !slices.Equal(own, want) || c.Rounds != rounds || n <= radix && c.Bytes != int64(152*(n-1)) {
		return fmt.Errorf("words %v, want %v, %d rounds, want %d, %d bytes: %v", own, want, c.Rounds, rounds, c.Bytes, err)
	}
	before := c.Rounds
	for _, lengths := range [][]int{{0}, {1}, {300}} {
		record := func(rank int) []byte { return bytes.Repeat([]byte{byte(rank), byte(rank >> 8)}, lengths[0]) }
		all, err := c.Allgather(ctx, record(r))
		for rank := range n {
			if err != nil || !bytes.Equal(all[rank], record(rank)) {
				return fmt.Errorf("the record of rank %d is another: %v", rank, err)
			}
		}
	}
	each := (c.Rounds - before) / 3
	want, before := [3]byte{}, c.Rounds
	add := func(sum, more []byte) {
		for i := range sum {
			sum[i] += more[i]
		}
	}
	for i := range n {
		add(want[:], []byte{byte(i), byte(i * i), 1})
	}
	if got, err := c.Sum(ctx, []byte{byte(r), byte(r * r), 1}, add); err != nil || !bytes.Equal(got, want[:]) || c.Rounds-before != each {
		return fmt.Errorf("sum %v, want %v, %d rounds, want %d: %v", got, want, c.Rounds-before, each, err)
	}
	return nil
}

// TestCollectives gives all ranks what all have, on tags apart from those of other collectives under way.
func TestCollectives(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 7, 8, 9, 16, 17, 40, 65, 257} {
		for r, err := range ranks(t, n, func(ctx context.Context, tr transport.Transport) error {
			c, done := New(tr, time.Minute), make(chan error)
			beside := c.Separate()
			go func() {
				all, err := beside.Allgather(ctx, []byte{byte(tr.Rank()), 9})
				for rank := range all {
					if err == nil && !bytes.Equal(all[rank], []byte{byte(rank), 9}) {
						err = fmt.Errorf("beside, the record of rank %d is %x", rank, all[rank])
					}
				}
				done <- err
			}()
			return errors.Join(collect(ctx, tr, c), <-done)
		}) {
			if err != nil {
				t.Errorf("rank %d of %d: %v", r, n, err)
			}
		}
	}
}

// TestAllgatherv gives records of many lengths to all, and short ones in one collective.
func TestAllgatherv(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 10} {
		for _, lengths := range [][]int{{0}, {0, 1}, {mostShort, 3}, {mostShort + 1}, {5, mostShort + 1, 0}, {10000, mostShort, 0, 7}} {
			record := func(r int) []byte { return bytes.Repeat([]byte{byte(r + 1)}, lengths[r%len(lengths)]) }
			for r, err := range ranks(t, n, func(ctx context.Context, tr transport.Transport) error {
				got, err := Allgatherv(ctx, tr, record(tr.Rank()), time.Minute)
				for r := range n {
					if err == nil && (len(got) != n || !bytes.Equal(got[r], record(r))) {
						err = fmt.Errorf("of rank %d: %v", r, got)
					}
				}
				return err
			}) {
				if err != nil {
					t.Errorf("lengths %v, rank %d of %d: %v", lengths, r, n, err)
				}
			}
		}
	}
}

// TestImpossible has a rank say what cannot be: all name it, and nobody makes room for it.
func TestImpossible(t *testing.T) {
	t.Parallel()
	values := func(ctx context.Context, tr transport.Transport) error {
		_, err := AllgatherValues(ctx, tr, 1, time.Minute)
		return err
	}
	records := func(ctx context.Context, tr transport.Transport) error {
		_, err := Allgatherv(ctx, tr, []byte{1}, time.Minute)
		return err
	}
	for want, x := range map[string]struct {
		others func(ctx context.Context, tr transport.Transport) error
		record []byte
	}{
		"rank 2 announces a text of 4611686018427387904 bytes": {records, append(binary.LittleEndian.AppendUint64(nil, 1<<62), make([]byte, mostShort)...)},
		"rank 2 says what does not fit here":                   {values, append(binary.LittleEndian.AppendUint64(nil, 5), append([]byte(`{"a":`), make([]byte, mostShort-5)...)...)},
	} {
		for r, err := range ranks(t, 3, func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank() < 2 {
				return x.others(ctx, tr)
			}
			_, err := New(tr, time.Minute).Allgather(ctx, x.record)
			return err
		}) {
			if r < 2 && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("rank %d: %v, want %s", r, err, want)
			}
		}
	}
}

// TestCompare finds who differs from most ranks, and in what.
func TestCompare(t *testing.T) {
	t.Parallel()
	ports := func(p string) declaration { return declaration{Terms: []Term{{"model", "paper"}, {"ports", p}}} }
	differ := func(value, with string) []Difference { return []Difference{{Term{"ports", value}, with}} }
	network := declaration{Terms: []Term{{"model", "network"}}}
	for _, c := range []struct {
		all  []declaration
		want *DisagreementError
	}{
		{[]declaration{ports("1"), ports("2")}, &DisagreementError{[]int{1}, 0, differ("2", "1")}},
		{[]declaration{ports("1"), ports("2"), ports("2")}, &DisagreementError{[]int{0}, 1, differ("1", "2")}},
		{[]declaration{ports("1"), ports("2"), ports("3")}, &DisagreementError{[]int{1, 2}, 0, differ("2", "1")}},
		{[]declaration{ports("1"), network, ports("1")}, &DisagreementError{[]int{1}, 0, []Difference{{Term{"model", "network"}, "paper"}}}},
	} {
		if err := compare(c.all, nil); !reflect.DeepEqual(err, error(c.want)) {
			t.Errorf("%v: got %v, want %v", c.all, err, c.want)
		}
	}
	for want, err := range map[string]DisagreementError{
		"volley: rank 3 differs from rank 0 in matrix: give all the same": {[]int{3}, 0, []Difference{{Term: Term{Name: "matrix"}}}},
		"volley: ranks 0, 3, 12 differ from rank 1 in field (257, not 2^8), ports (2, not 1): give all the same": {
			[]int{0, 3, 12}, 1, []Difference{{Term{"field", "257"}, "2^8"}, {Term{"ports", "2"}, "1"}},
		},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	few := func(words []uint64) string { return strings.Repeat("it has many words", min(1, int(words[0]/2))) }
	for _, c := range []struct {
		second uint64
		want   string
	}{{1, "volley: the digest of a greeting arrived damaged"}, {2, "volley: rank 1 says that it has many words"}} {
		if err := compare([]declaration{{Words: []uint64{1}}, {Words: []uint64{c.second}}}, few); err == nil || err.Error() != c.want {
			t.Errorf("%d: got %v, want %s", c.second, err, c.want)
		}
	}
}

// FuzzCompare lets settings be anything: who has the same as most does not differ.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"Terms":[{"Name":"ports","Value":"1"}],"Words":[1]}`), []byte(`{"Terms":[]}`))
	f.Add([]byte(`null`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer fuzzlimit.Hold(t, len(a)+len(b))()
		all, err := values[declaration]([][]byte{a, b, a})
		if err != nil {
			return
		}
		if differ := new(DisagreementError); errors.As(compare(all, nil), &differ) && (!slices.Equal(differ.Ranks, []int{1}) || differ.Reference != 0) {
			t.Errorf("%q, %q: %v", a, b, differ)
		}
	})
}

// FuzzUnsealed lets greetings arrive damaged: none is taken for another.
func FuzzUnsealed(f *testing.F) {
	f.Add(sealed(&Greeting{Verb: "encode", Version: Version, Host: "h1"}), sealed(&Greeting{Verb: "encode", Version: Version, Host: "h2"}))
	f.Add(sealed(&Greeting{Verb: "encode", Version: Version}), sealed(&Greeting{Verb: "protect", Version: Version}))
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer fuzzlimit.Hold(t, len(a)+len(b))()
		both, err := unseal([][]byte{a, b})
		if err != nil {
			return
		}
		for i, data := range [][]byte{a, b} {
			if one, err := unseal([][]byte{data}); err != nil || one[0] != both[i] {
				t.Errorf("%x: %x, %v; of both: %x", data, one, err, both[i])
			}
		}
	})
}
