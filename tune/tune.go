// Package tune measures what the cost model has to know of a machine: β, the
// time a message takes to start, τ, that of a byte of it, and γ, that of a
// multiply-add on a byte. The figures go into a small file that later runs read.
package tune

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"volley/field"
	"volley/sim"
	"volley/transport"
)

// A Result is what was measured.
type Result struct {
	Date time.Time `json:"date"`
	Host string    `json:"host"`
	CPU  string    `json:"cpu"`
	CPUs int       `json:"cpus"` // that the process may use

	Transport string `json:"transport"` // its name
	Ranks     int    `json:"ranks"`
	Ports     int    `json:"ports"` // messages that each rank sent, and received, at a time

	// A round in which the largest message has n bytes takes
	// BetaSeconds + n·TauSecondsPerByte. These are the fit to Points.
	BetaSeconds       float64 `json:"beta_seconds"`
	TauSecondsPerByte float64 `json:"tau_seconds_per_byte"`
	Residual          float64 `json:"residual"`  // root mean square of what the fit is off, relative to each point
	RSquared          float64 `json:"r_squared"` // of the fit, with the same weights

	Points []Point  `json:"points"` // by bytes, ascending
	Coding []Coding `json:"coding"` // by field, in the order asked for
}

// A Point is the time of rounds with messages of one size.
type Point struct {
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"` // of a round: the median of the samples
	Least   float64 `json:"least"`   // of the samples
	Most    float64 `json:"most"`
	Samples int     `json:"samples"`
	Rounds  int     `json:"rounds"` // of each sample, which is their mean
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

// Beta returns β, the time a message takes to start.
func (r *Result) Beta() time.Duration {
	return time.Duration(r.BetaSeconds*float64(time.Second) + 0.5)
}

// Tau returns τ, the time a byte of a message takes.
func (r *Result) Tau() sim.PerByte { return sim.PerByte(r.TauSecondsPerByte) }

// Gamma returns γ, the time a multiply-add takes on a byte, in the named field, and
// false where that field was not measured. It is that of packets in the cache,
// where the segments of a run mostly are.
func (r *Result) Gamma(fieldName string) (_ sim.PerByte, ok bool) {
	for _, c := range r.Coding {
		if c.Field == fieldName {
			return sim.PerByte(c.Cached), true
		}
	}
	return 0, false
}

// An Option changes how [Measure] measures. All ranks give the same options.
type Option func(*options)

type options struct {
	time  time.Duration
	ports int
	name  string
}

// DefaultTime is how long [Measure] takes by default.
const DefaultTime = 3 * time.Second

// WithTime sets about how long the measurements take. It is exceeded where a
// network is too slow to send a few small messages in that time.
func WithTime(d time.Duration) Option { return func(o *options) { o.time = d } }

// WithPorts sets how many messages a rank sends, and receives, at a time. More than
// the other ranks count as all of them. The default is 1.
func WithPorts(p int) Option { return func(o *options) { o.ports = p } }

// WithName names the transport in the result. The default is its Go type.
func WithName(transport string) Option { return func(o *options) { o.name = transport } }

// Measure measures the transport and the arithmetic of the fields. Every rank of
// the transport calls it, with equal fields and options; there have to be two or
// more. All obtain the same figures, each with the date and machine of its own.
//
// Rounds are timed in which every rank sends and receives a message of some size,
// as in a run, from 0 bytes to 4 MiB, many times for each size, in turns. Before it
// is sent a message is written, and after it was received it is read, a byte in each
// cache line: a transport that hands over the memory of the sender has moved nothing
// before that. Then all ranks combine packets at once. It is always the slowest rank
// whose time counts, so where ranks share CPUs, that is in all figures.
//
// A failure ends the group, as in a run; the error is then that of a transfer, or
// the cause of ctx.
func Measure(ctx context.Context, t transport.Transport, fields []field.Field, opts ...Option) (*Result, error) {
	r, err := measure(ctx, t, fields, opts)
	if err != nil {
		if !errors.As(err, new(*transport.AbortError)) {
			t.Abort(err)
		}
		return nil, err
	}
	return r, nil
}

func measure(ctx context.Context, t transport.Transport, fields []field.Field, opts []Option) (*Result, error) {
	o := options{time: DefaultTime, ports: 1, name: strings.TrimPrefix(fmt.Sprintf("%T", t), "*")}
	for _, option := range opts {
		option(&o)
	}
	switch {
	case t.Size() < 2:
		return nil, fmt.Errorf("%d ranks: want 2 or more, to send messages", t.Size())
	case o.ports < 1:
		return nil, fmt.Errorf("%d ports: want 1 or more", o.ports)
	case o.time <= 0:
		return nil, fmt.Errorf("time %v: want more than 0", o.time)
	}
	o.ports = min(o.ports, t.Size()-1)
	m := &meter{t: t, ports: o.ports, start: time.Now()}
	if err := m.compareTerms(ctx, fields, o); err != nil {
		return nil, err
	}
	forMessages := o.time
	if len(fields) > 0 {
		forMessages = o.time * 6 / 10
	}
	r := &Result{
		Date: time.Now().UTC().Truncate(time.Second), CPU: cmp.Or(strings.TrimSpace(cpuid.CPU.BrandName), runtime.GOOS+"/"+runtime.GOARCH), CPUs: runtime.GOMAXPROCS(0),
		Transport: o.name, Ranks: t.Size(), Ports: o.ports,
	}
	var err error
	if r.Host, err = os.Hostname(); err != nil {
		r.Host = "unknown"
	}
	if r.Points, err = m.messages(ctx, forMessages); err != nil {
		return nil, err
	}
	r.fit()
	r.BetaSeconds, r.TauSecondsPerByte = rounded(r.BetaSeconds), rounded(r.TauSecondsPerByte)
	r.Residual, r.RSquared = rounded(r.Residual), rounded(r.RSquared)
	r.Coding, err = m.coding(ctx, fields, o.time.Seconds())
	return r, err
}

// compareTerms returns an error, at every rank, unless all were called alike.
func (m *meter) compareTerms(ctx context.Context, fields []field.Field, o options) error {
	h := sha256.New()
	fmt.Fprintf(h, "1 %v %d", o.time, o.ports)
	for _, f := range fields {
		fmt.Fprintf(h, " %s", f.Name())
	}
	terms := float64(binary.LittleEndian.Uint64(h.Sum(nil)) >> 16) // without loss
	most := []float64{terms, -terms}
	if err := m.agree(ctx, most); err != nil {
		return err
	}
	if most[0] != -most[1] {
		return errors.New("the ranks were started with different fields, ports or times: start all alike")
	}
	return nil
}

// rounded returns x in six digits: none of those after them was measured.
func rounded(x float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64) // which reads what it writes
	return r
}
