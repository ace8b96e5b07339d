package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"volley"
	"volley/algo/schedule"
	"volley/field"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/transport"
)

// settings are what all ranks measure.
type settings struct {
	sizes         []int
	problems      []problem
	plans, names  []string // algorithms of Volley; peers
	pauses        []time.Duration
	runs          int
	enough, most  time.Duration
	network       string
	bitsPerSecond float64 // of a link; 0: unknown
	delay         time.Duration
	links         sim.Network  // that Volley chooses plans for
	subnet        netip.Prefix // of the raw exchange, where it is measured
	output        string       // of JSON lines, at rank 0
	drops         []string
	withTCP       bool                // Volley over TCP is measured, too
	tcp           transport.Transport // for that
}

// A problem is a matrix before K is known.
type problem struct {
	spec  matrices.Spec
	field field.Field
}

func (p problem) String() string {
	text := p.spec.Family
	if p.spec.Argument != "" {
		text += ":" + p.spec.Argument
	}
	if p.spec.Order != "" {
		text += ", " + p.spec.Order
	}
	return text
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet("network measure", flag.ContinueOnError)
	sizes := f.String("sizes", "64KiB,1MiB", "`sizes` of packets, ascending")
	matrices := f.String("matrices", "random:1", "matrices as volley encode has them, each FAMILY[:ARGUMENT][/FIELD[/ORDER]]; space between them")
	plans := f.String("plans", "auto", "`algorithms` of Volley, space between them; the first is measured as it runs by default, too")
	usual := slices.Concat(peers, windows, uncoded, []string{codingAlone})
	known := slices.Concat(usual, later)
	names := f.String("peers", strings.Join(usual, ","), "`ways` to compare with; also "+strings.Join(later, ", "))
	pauses := f.String("pauses", "5ms", "`times` to sleep before each run, each measured by itself; 0 is with warm cores")
	f.IntVar(&s.runs, "runs", 9, "runs that count; one more goes before them")
	f.DurationVar(&s.enough, "enough", time.Minute, "after this time on packets of one size 3 runs are enough")
	f.DurationVar(&s.most, "most", 15*time.Second, "run once what takes longer; leave out what is expected to take 3 times as long")
	f.StringVar(&s.output, "json", "", "`file` to which rank 0 adds a line for each size and matrix")
	f.StringVar(&s.network, "network", "", "`name` of the network in the tables")
	rate := f.Float64("rate", 0, "`Mbit/s` of each rank's link, for Volley's plans, the bound and the name of the network")
	f.DurationVar(&s.delay, "delay", 0, "one-way delay of the links, with --rate")
	slower := f.String("slower", "", "`ranks` with slower links, and their rate over that of the others, such as 7:0.5, with --rate")
	subnet := f.String("raw", "", "measure the raw exchange over TCP, too, between the ranks' addresses in this `network`, such as 10.78.0.0/24")
	engine := f.String("engine", "mpi", "mpi, or tcp: measure Volley over TCP as well, with TLS, in the network of --raw or on loopback")
	drops := f.String("drops", "", "`command` that prints how many packets the network has dropped so far")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	var err error
	refuse := func(format string, values ...any) {
		if err == nil {
			err = fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, values...))
		}
	}
	for _, text := range list(*sizes) {
		n, err := humanize.ParseBytes(text)
		if err != nil || n < 1 || n > math.MaxInt32 || len(s.sizes) > 0 && int(n) <= s.sizes[len(s.sizes)-1] {
			refuse("--sizes %q: want ascending sizes such as 64KiB, below 2 GiB", text)
		}
		s.sizes = append(s.sizes, int(n))
	}
	for _, text := range strings.Fields(*matrices) {
		p, err := parseProblem(text)
		if err != nil {
			refuse("--matrices %q: %v", text, err)
		}
		s.problems = append(s.problems, p)
	}
	for _, text := range list(*pauses) {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			refuse("--pauses %q: want times such as 5ms", text)
		}
		s.pauses = append(s.pauses, d)
	}
	s.plans = strings.Fields(*plans)
	s.names = list(*names)
	for _, name := range s.names {
		if !slices.Contains(known, name) {
			refuse("--peers %q: want some of %s", name, strings.Join(known, ", "))
		}
	}
	if *subnet != "" {
		var err error
		if s.subnet, err = netip.ParsePrefix(*subnet); err != nil {
			refuse("--raw: %v", err)
		}
		s.names = append(s.names, raw)
	}
	if s.withTCP = *engine == "tcp"; !s.withTCP && *engine != "mpi" {
		refuse("--engine %q: want mpi or tcp", *engine)
	}
	s.bitsPerSecond = 1e6 * *rate
	s.links = volley.DefaultNetwork()
	if *rate > 0 {
		megabits := strconv.FormatFloat(*rate, 'f', -1, 64)
		s.network = cmp.Or(s.network, strings.TrimSuffix(megabits+" Mbit/s, "+span(s.delay.Seconds()), ", "))
		var err error
		if s.links, err = sim.ParseNetwork(megabits + "mbit/" + s.delay.String()); err != nil {
			refuse("--rate %v, --delay %v: %v", *rate, s.delay, err)
		}
		if s.links.Slower = *slower; *slower != "" {
			s.network += ", slower " + *slower
		}
	}
	s.drops = strings.Fields(*drops)
	switch {
	case f.NArg() > 0:
		refuse("arguments %q: want none", f.Args())
	case len(s.sizes) == 0 || len(s.problems) == 0 || len(s.plans) == 0 || len(s.pauses) == 0:
		refuse("--sizes, --matrices, --plans and --pauses: want one or more of each")
	case s.runs < 1 || s.enough < 0 || s.most <= 0:
		refuse("--runs, --most: want more than 0; --enough: 0 or more")
	case *rate < 0 || math.IsInf(*rate, 0) || math.IsNaN(*rate) || s.delay < 0:
		refuse("--rate %v, --delay %v: want 0 or more", *rate, s.delay)
	}
	return s, err
}

// parseProblem reads FAMILY[:ARGUMENT][/FIELD[/ORDER]].
func parseProblem(text string) (p problem, err error) {
	words := strings.Split(text, "/")
	if len(words) > 3 {
		return p, errors.New("want FAMILY[:ARGUMENT][/FIELD[/ORDER]]")
	}
	if p.spec, err = matrices.ParseSpec(words[0]); err != nil {
		return p, err
	}
	name := "2^8"
	if len(words) > 1 {
		name = words[1]
	}
	if len(words) > 2 {
		p.spec.Order = words[2]
	}
	p.field, err = field.Parse(name)
	return p, err
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// goodput is what TCP leaves of a link's rate: 1,448 of 1,514 bytes of a frame are data,
// and acknowledgements of what comes in go out beside them.
const goodput = 0.945

// bound returns the seconds that the links allow an encode of every matrix without zeros:
// all links together send 2(K-1) packets at least, each of them one, and those of the second
// half depend on the first. 0 is unknown.
func (s *settings) bound(k, size int) float64 {
	if s.bitsPerSecond == 0 {
		return 0
	}
	packets := 2 * float64(k-1) / float64(k)
	if rates, _ := s.links.Rates(k); rates != nil {
		packets = schedule.BoundByRates(rates)
	}
	bytes := packets * float64(size)
	return 8*bytes/(goodput*s.bitsPerSecond) + 2*s.delay.Seconds()
}
