package buffers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"volley/group"
	"volley/group/buffers"
	"volley/group/protection"
	"volley/internal/faulty"
	"volley/internal/race"
	"volley/internal/verifyall"
	"volley/transport"
	"volley/transport/local"
)

// A job is what the ranks of a group have.
type job struct {
	options []buffers.Options
	buffers [][][]byte
	parity  [][]byte

	together bool // on one host
}

// newJob makes buffers of random lengths, some of them empty, that are a few blocks at most, of ranks on one host or apart.
func newJob(k int, o buffers.Options, most int, rng *rand.Rand) *job {
	j := &job{options: slices.Repeat([]buffers.Options{o}, k)}
	for range k {
		var list [][]byte
		for range rng.IntN(4) {
			b := make([]byte, rng.IntN(most+1)*rng.IntN(2))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			list = append(list, b)
		}
		j.buffers = append(j.buffers, list)
	}
	j.together = len(j.buffers[k-1])%2 == 0 // by chance
	return j
}

func (j *job) clone() *job {
	return &job{slices.Clone(j.options), copyOf(j.buffers), copyOf([][][]byte{j.parity})[0], j.together}
}

// equal says how what ranks have differs.
func (j *job) equal(o *job) error {
	for r := range j.buffers {
		for i, b := range j.buffers[r] {
			if !bytes.Equal(b, o.buffers[r][i]) {
				return fmt.Errorf("rank %d: buffer %d is another one", r, i)
			}
		}
		if !bytes.Equal(j.parity[r], o.parity[r]) {
			return fmt.Errorf("rank %d: its parity is another one", r)
		}
	}
	return nil
}

// lose makes new memory at ranks, full of something else.
func (j *job) lose(ranks ...int) {
	for _, r := range ranks {
		for i := range j.buffers[r] {
			j.buffers[r][i] = bytes.Repeat([]byte{0xee}, len(j.buffers[r][i]))
		}
		used := len(bytes.TrimRight(j.parity[r], "\x00")) // the room is that of the rank that has most
		copy(j.parity[r], bytes.Repeat([]byte{0xee}, used))
	}
}

// run calls f at every rank and returns the errors.
func (j *job) run(f func(ctx context.Context, t transport.Transport, r int) error, faults ...[]faulty.Fault) []error {
	errs := make([]error, len(j.buffers))
	ends := local.New(len(j.buffers))
	if j.together {
		ends = local.NewHosts(len(j.buffers))
	}
	var wg sync.WaitGroup
	for r, end := range ends {
		wg.Go(func() {
			t := transport.Transport(end)
			if r < len(faults) {
				t = faulty.New(t, faults[r]...)
			}
			if errs[r] = f(context.Background(), t, r); errs[r] != nil {
				end.Abort(errs[r])
			}
			end.Close()
		})
	}
	wg.Wait()
	return errs
}

func lengths(buffers [][]byte) (list []int64) {
	for _, b := range buffers {
		list = append(list, int64(len(b)))
	}
	return list
}

// size makes room for parity.
func (j *job) size() []error {
	j.parity = make([][]byte, len(j.buffers))
	return j.run(func(ctx context.Context, t transport.Transport, r int) error {
		n, err := buffers.ParityBytes(ctx, t, lengths(j.buffers[r]), j.options[r])
		j.parity[r] = make([]byte, n)
		return err
	})
}

func (j *job) protect(faults ...[]faulty.Fault) []error {
	return j.run(func(ctx context.Context, t transport.Transport, r int) error {
		return buffers.Protect(ctx, t, j.buffers[r], j.parity[r], j.options[r])
	}, faults...)
}

func (j *job) recover(lost ...int) (*buffers.Report, []error) {
	reports := make([]*buffers.Report, len(j.buffers))
	errs := j.run(func(ctx context.Context, t transport.Transport, r int) (err error) {
		reports[r], err = buffers.Recover(ctx, t, j.buffers[r], slices.Contains(lost, r), j.parity[r], j.options[r])
		return err
	})
	return reports[0], errs
}

// protected makes a job whose buffers are protected.
func protected(t *testing.T, k int, o buffers.Options, most int, rng *rand.Rand) *job {
	t.Helper()
	j := newJob(k, o, most, rng)
	must(t, errors.Join(j.size()...))
	must(t, errors.Join(j.protect()...))
	return j
}

// TestBuffers loses sets of up to R ranks, whose buffers and parity come back, and R+1, where nothing is written.
func TestBuffers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 33))
	largest := 16
	if race.Enabled {
		largest = 5
	}
	for k := 2; k <= largest; k++ {
		for r := 1; r < k; r++ {
			if k > 6 && !verifyall.Enabled && (k%5 > 1 || r != 1 && r != 2 && r != k/2 && r != k-1) {
				continue
			}
			digest := []string{"", group.SHA256, group.BLAKE3}[rng.IntN(3)]
			most := []int{0, 3000, 200_000}[rng.IntN(3)] // all may be empty
			j := protected(t, k, buffers.Options{Tolerate: r, Digest: digest}, most, rng)
			name := fmt.Sprintf("K = %d, R = %d, %d bytes", k, r, most)
			var sets [][]int
			for set := 1; set < 1<<k && k <= 5; set++ {
				var list []int
				for i := range k {
					if set>>i&1 == 1 {
						list = append(list, i)
					}
				}
				sets = append(sets, list)
			}
			for range 4 {
				sets = append(sets, rng.Perm(k)[:1+rng.IntN(r)])
			}
			sets = append(sets, nil, rng.Perm(k)[:r], rng.Perm(k)[:r+1])
			for _, lost := range sets {
				is := j.clone()
				is.lose(lost...)
				before := is.clone()
				report, errs := is.recover(lost...)
				if len(lost) <= r {
					must(t, errors.Join(errs...))
					if err := is.equal(j); err != nil {
						t.Fatalf("%s: lost %v: %v", name, lost, err)
					}
					if got := len(report.Lost); got != len(lost) || report.Damaged != nil {
						t.Fatalf("%s: lost %v: report %+v", name, lost, report)
					}
					continue
				}
				for rank, err := range errs {
					if !group.IsInputError(err) || len(lost) < k && !errors.As(err, new(*protection.TooManyError)) {
						t.Fatalf("%s: lost %v: rank %d: %v", name, lost, rank, err)
					}
				}
				must(t, is.equal(before))
			}
		}
	}
}

// TestBuffersParity compares parity with what docs/format.md says of it, computed here bit by bit.
func TestBuffersParity(t *testing.T) {
	t.Parallel()
	const k, r, d = 5, 2, 3
	rng := rand.New(rand.NewPCG(2, 33))
	j := protected(t, k, buffers.Options{Tolerate: r}, 300_000, rng)
	most := 0
	data := make([][]byte, k)
	for n, list := range j.buffers {
		data[n] = bytes.Join(list, nil)
		most = max(most, len(data[n]))
	}
	chunk := ((most+d-1)/d + 7) / 8 * 8
	if chunk <= 64<<10 {
		t.Fatal("there is one block: take longer buffers")
	}
	times := func(a, b byte) (c byte) {
		for ; b > 0; b >>= 1 {
			if b&1 == 1 {
				c ^= a
			}
			if a >= 128 {
				a = a<<1 ^ 0x1d
			} else {
				a <<= 1
			}
		}
		return c
	}
	inverse := func(a byte) byte {
		for b := 1; ; b++ {
			if times(a, byte(b)) == 1 {
				return byte(b)
			}
		}
	}
	at := func(n, chunks, of, i int) int { // byte i of a chunk, in what lies row by row
		row, within := i>>16, i&(1<<16-1)
		return row<<16*chunks + of*min(1<<16, chunk-row<<16) + within
	}
	for word := range k {
		for p := range r {
			node := (word + p) % k
			got := j.parity[node][512:]
			for i := 0; i < chunk; i += 1 + rng.IntN(50) {
				want := byte(0)
				for c := range d {
					from := (word + r + c) % k
					if o := at(from, d, c, i); o < len(data[from]) {
						want ^= times(inverse(byte(c^(d+p))), data[from][o])
					}
				}
				if is := got[at(node, r, p, i)]; is != want {
					t.Fatalf("codeword %d, parity %d, byte %d: %d, want %d", word, p, i, is, want)
				}
			}
		}
	}
}

// TestBuffersDamaged flips bytes of buffers and of every part of the parity: all comes back, and the report names the
// rank. Where more ranks have damage at one place than may be lost, nothing is written.
func TestBuffersDamaged(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 33))
	for _, o := range []buffers.Options{{Tolerate: 2}, {Tolerate: 2, Settings: protection.Settings{Key: []byte("0123456789abcdef")}}} {
		j := newJob(5, o, 0, rng)
		for r := range j.buffers {
			j.buffers[r] = [][]byte{bytes.Repeat([]byte{byte(r)}, 100_000), {}, bytes.Repeat([]byte{byte(r + 7)}, 150_000+r)}
		}
		must(t, errors.Join(j.size()...))
		must(t, errors.Join(j.protect()...))
		for i := 0; i < len(j.parity[3]); i += 1 + rng.IntN(min(100+i, len(j.parity[3])/15)) {
			is := j.clone()
			is.parity[3][i] ^= 4
			is.buffers[1][2][rng.IntN(1000)] ^= 1
			report, errs := is.recover()
			must(t, errors.Join(errs...))
			if err := is.equal(j); err != nil || !slices.Equal(report.Damaged, []int{1, 3}) || len(report.Notes) != 2 {
				t.Fatalf("byte %d: %v, %+v", i, err, report)
			}
		}
		is := j.clone() // a rank that does not say that it has lost everything
		is.lose(4)
		report, errs := is.recover(0)
		must(t, errors.Join(errs...))
		if err := is.equal(j); err != nil || !slices.Equal(report.Damaged, []int{4}) || !slices.Equal(report.Lost, []int{0}) {
			t.Fatalf("%v, %+v", err, report)
		}
		is.lose(0, 1, 2)
		before := is.clone()
		for r, err := range second(is.recover()) {
			if !group.IsInputError(err) || !strings.Contains(err.Error(), "nothing was written: rank 0 has 10 damaged") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		must(t, is.equal(before))
	}
}

func second[A, B any](_ A, b B) B { return b }

// TestBuffersRefused gives ranks what does not go together. Nothing is written.
func TestBuffersRefused(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 33))
	key, other := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	keyed := protected(t, 4, buffers.Options{Tolerate: 1, Settings: protection.Settings{Key: key}}, 50_000, rng)
	plain := protected(t, 4, buffers.Options{Tolerate: 1}, 50_000, rng)
	again := plain.clone()
	must(t, errors.Join(again.protect()...))
	for _, c := range []struct {
		name   string
		of     *job
		change func(*job)
		verb   func(*job) []error
		want   string
		all    bool // ranks say so, not that another has failed
	}{
		{"parity of two protections", plain, func(j *job) { j.parity[2] = bytes.Clone(again.parity[2]) }, nil, "rank 1 and rank 2 have parity of two protections", true},
		{"another rank's", plain, func(j *job) { j.parity[1], j.parity[2] = j.parity[2], j.parity[1] }, nil, "rank 1 has the parity of rank 2", true},
		{"other lengths", plain, func(j *job) { j.buffers[1] = append(j.buffers[1], nil) }, nil, "rank 1 has", false},
		{"a shorter buffer", plain, func(j *job) { i := longest(j, 1); j.buffers[1][i] = j.buffers[1][i][1:] }, nil, "when it was protected", false},
		{"no room", plain, func(j *job) { j.parity[1] = j.parity[1][:1000] }, nil, "room for 1000 bytes of parity: want", false},
		{"no room to protect", plain, func(j *job) { j.parity[1] = j.parity[1][:1000] }, protectAll, "room for 1000 bytes of parity: want", false},
		{"fewer ranks", plain, func(j *job) { j.buffers, j.parity = j.buffers[:3], j.parity[:3] }, nil, "of 4 processes, and 3 are here", true},
		{"one rank", plain, func(j *job) { j.buffers, j.parity = j.buffers[:1], j.parity[:1] }, nil, "need at least 2 processes", true},
		{"nothing", plain, func(j *job) { j.parity = make([][]byte, 4) }, nil, "no process has parity", true},
		{"no key", keyed, func(j *job) { each(j, func(o *buffers.Options) { o.Key = nil }) }, nil, "give the key", true},
		{"another key", keyed, func(j *job) { each(j, func(o *buffers.Options) { o.Key = other }) }, nil, "give the key with which", true},
		{"two keys", keyed, func(j *job) { j.options[1].Key = other }, nil, "another key", true},
		{"a key for what has none", plain, func(j *job) { each(j, func(o *buffers.Options) { o.Key = key }) }, nil, "protected without a key", true},
		{"tolerating none", plain, func(j *job) { each(j, func(o *buffers.Options) { o.Tolerate = 0 }) }, protectAll, "want 1 to 3", true},
		{"tolerating all", plain, func(j *job) { each(j, func(o *buffers.Options) { o.Tolerate = 4 }) }, protectAll, "want 1 to 3", true},
		{"ranks that disagree", plain, func(j *job) { j.options[2].Tolerate = 2 }, protectAll, "give all the same", true},
		{"two digests", plain, func(j *job) { j.options[2].Digest = group.SHA256 }, protectAll, "give all the same", true},
		{"no such digest", plain, func(j *job) { each(j, func(o *buffers.Options) { o.Digest = "md5" }) }, protectAll, `digest "md5"`, true},
		{"xxh3 with a key", keyed, func(j *job) { each(j, func(o *buffers.Options) { o.Digest = group.XXH3 }) }, protectAll, "with a key take", true},
		{"no room for any", plain, func(j *job) { each(j, func(o *buffers.Options) { o.Tolerate = 4 }) }, (*job).size, "want 1 to 3", true},
	} {
		j := c.of.clone()
		c.change(j)
		before := j.clone()
		verb := c.verb
		if verb == nil {
			verb = func(j *job) []error { return second(j.recover()) }
		}
		own := 0
		for r, err := range verb(j) {
			switch {
			case group.IsInputError(err) && strings.Contains(err.Error(), c.want):
				own++
			case c.all || !errors.As(err, new(*transport.AbortError)):
				t.Errorf("%s: rank %d: %v, want %q", c.name, r, err, c.want)
			}
		}
		if own == 0 {
			t.Errorf("%s: no rank says why", c.name)
		}
		if err := j.equal(before); c.verb == nil && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func protectAll(j *job) []error { return j.protect() }

func each(j *job, set func(o *buffers.Options)) {
	for r := range j.options {
		set(&j.options[r])
	}
}

// longest returns the longest buffer of a rank.
func longest(j *job, r int) (at int) {
	for i, b := range j.buffers[r] {
		if len(b) > len(j.buffers[r][at]) {
			at = i
		}
	}
	return at
}
