// Package tune measures what the cost models have to know of a machine: L, o and G of its network, which [sim.Network]
// explains, and γ, the time of a multiply-add on a byte. The figures go into a small file that later runs read.
package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"volley/collective"
	"volley/field"
	"volley/sim"
	"volley/transport"
)

// A Platform is what was measured, or is to be used: a transport between ranks on hosts.
type Platform struct {
	Transport string   `json:"transport"` // its name
	Hosts     []string `json:"hosts"`     // each once, sorted; none: not known
	Ranks     int      `json:"ranks"`
}

// String returns, for example, "mpi, 8 ranks on 2 hosts".
func (p Platform) String() string {
	text := fmt.Sprintf("%s, %d ranks", p.Transport, p.Ranks)
	switch len(p.Hosts) {
	case 0:
		return text
	case 1:
		return text + " on 1 host"
	}
	return fmt.Sprintf("%s on %d hosts", text, len(p.Hosts))
}

// A Result is what was measured on a platform.
type Result struct {
	Platform
	Date time.Time `json:"date"`
	CPU  string    `json:"cpu"`
	CPUs int       `json:"cpus"` // that the process may use

	Network sim.Network `json:"network"` // the fit to Points
	Points  []Point     `json:"points"`  // by bytes, then by messages, rising
	Coding  []Coding    `json:"coding"`  // by field, in the order asked for
}

// A Point is the time of rounds in which every rank sends, and receives, some messages of equal sizes.
type Point struct {
	Messages int     `json:"messages"` // n
	Bytes    int     `json:"bytes"`    // of all of them together
	Seconds  float64 `json:"seconds"`  // of a round: the median of blocks of samples, of each of which the least counts
	Least    float64 `json:"least"`    // of the samples
	Greatest float64 `json:"most"`
	Samples  int     `json:"samples"`
}

// Coding is how fast one field's packets are combined.
type Coding struct {
	Field       string  `json:"field"` // canonical name
	SymbolBytes int     `json:"symbol_bytes"`
	Sources     int     `json:"sources"`  // packets in a combination
	Cached      float64 `json:"cached"`   // γ: seconds per multiply-add and byte, of packets in the cache; the least of the samples
	Uncached    float64 `json:"uncached"` // of packets in memory
	Spread      float64 `json:"spread"`   // how much the median of the samples is above Cached, relative to it
}

// Beta returns β, the time of a message without its bytes: L + o.
func (r *Result) Beta() time.Duration { return r.Network.Latency + r.Network.Overhead }

// Tau returns τ, the time a byte of a message takes where a rank has one under way: G(1).
func (r *Result) Tau() sim.PerByte { return r.Network.Gap(1) }

// Gamma returns γ, the time a multiply-add takes on a byte of packets of so many bytes, in the named field, and
// false where that field was not measured. It is that of packets in the cache up to 512 KiB: those of a plan
// that are longer mostly are in memory.
func (r *Result) Gamma(fieldName string, bytes int64) (_ sim.PerByte, ok bool) {
	for _, c := range r.Coding {
		switch {
		case c.Field != fieldName:
		case bytes > uncachedBytes/4:
			return sim.PerByte(c.Uncached), true
		default:
			return sim.PerByte(c.Cached), true
		}
	}
	return 0, false
}

// DefaultTime is a good time for [Measure].
const DefaultTime = 5 * time.Second

// Measure measures the transport and the arithmetic of the fields, in about that time; a slow network takes longer.
// Every rank of the transport calls it, with equal fields and times; there have to be two or more. All obtain the same
// figures, each with the date, machine and platform of its own; the ranks of the platform are those of the transport.
//
// Rounds are timed in which every rank sends 1, 3, √K or K−1 messages of 1 B to 1 MiB together to the ranks that
// follow, in turns, two of a kind after a barrier. Then all ranks combine packets at once. It is always the slowest
// rank whose time counts, so where ranks share CPUs or a link, that is in all figures. Rounds of up to 64 KiB find
// their data in the cache, as what a plan has just computed is; longer ones find it in memory. Where the fit is bad,
// see [Result.Fits], the network is measured once more, and the better fit counts.
//
// Progress, unless nil, hears after each sample how much more time has passed, and at first, and where the network is
// measured once more, how much more is to come.
//
// A failure ends the group, as in a run; the error is then that of a transfer, or the cause of ctx.
func Measure(
	ctx context.Context, t transport.Transport, platform Platform, fields []field.Field, d time.Duration,
	progress func(elapsed, remaining time.Duration),
) (*Result, error) {
	if progress == nil {
		progress = func(_, _ time.Duration) {}
	}
	r, err := measure(ctx, t, platform, fields, d, progress)
	if err != nil {
		if !errors.As(err, new(*transport.AbortError)) {
			t.Abort(err)
		}
		return nil, err
	}
	return r, nil
}

func measure(
	ctx context.Context, t transport.Transport, platform Platform, fields []field.Field, d time.Duration,
	progress func(elapsed, remaining time.Duration),
) (*Result, error) {
	switch {
	case t.Size() < 2:
		return nil, fmt.Errorf("%d ranks: want 2 or more, to send messages", t.Size())
	case d <= 0:
		return nil, fmt.Errorf("time %v: want more than 0", d)
	}
	m := &meter{t: t, start: time.Now(), memory: make([]byte, Memory), progress: progress}
	settings := []collective.Term{collective.TermOf("version of the file", Version), collective.TermOf("time", d), {Name: "fields"}}
	for _, f := range fields {
		settings[2].Value += " " + f.Name()
	}
	if _, err := collective.New(t, 0).Greet(ctx, collective.Greeting{Verb: "measure", Terms: settings}, nil); err != nil {
		return nil, err
	}
	forNetwork := d.Seconds()
	if len(fields) > 0 {
		forNetwork *= 0.75
	}
	platform.Ranks = t.Size()
	r := &Result{
		Platform: platform, Date: time.Now().UTC().Truncate(time.Second),
		CPU: cmp.Or(strings.TrimSpace(cpuid.CPU.BrandName), runtime.GOOS+"/"+runtime.GOARCH), CPUs: runtime.GOMAXPROCS(0),
	}
	progress(0, d)
	for attempt := 0; attempt < attempts; attempt++ {
		if attempt > 0 {
			progress(0, duration(forNetwork))
		}
		points, err := m.network(ctx, forNetwork)
		if err != nil {
			return nil, err
		}
		again := Result{Points: points, Network: fit(points)}
		if attempt == 0 || again.Residual() < r.Residual() {
			r.Points, r.Network = again.Points, again.Network
		}
		if r.Fits() {
			break
		}
	}
	var err error
	r.Coding, err = m.coding(ctx, fields, m.elapsed+d.Seconds()-forNetwork)
	return r, err
}

// attempts is how often the network is measured until the fit is good.
const attempts = 2

// mostResidual is the largest residual of a good fit.
const mostResidual = 0.3

// Fits reports whether the network fits the points: where not, times that are expected by it are as far off.
func (r *Result) Fits() bool { return r.Residual() <= mostResidual }

// rounded returns x in six digits: none of those after them was measured.
func rounded(x float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64) // which reads what it writes
	return r
}
