package sim

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Network is a network with one link per node, in the words of LogGP: A. Alexandrov, M. Ionescu, K. Schauser, C.
// Scheiman, "LogGP: Incorporating Long Messages into the LogP Model", SPAA 1995. A round in which the busiest node
// exchanges m messages and b bytes takes L + o·m + G·b.
type Network struct {
	Latency  time.Duration // L, per round
	Overhead time.Duration // o, per message of a node
	Gap      PerByte       // G, the time a byte takes on the link
	Slower   string        // nodes whose links have a lower rate, and its ratio to that of the others: "7:0.5,3:0.25"
}

// Rates returns the rates of the links of so many nodes, 1 but for slower ones; nil: all have that.
func (n Network) Rates(nodes int) ([]float64, error) {
	if n.Slower == "" {
		return nil, nil
	}
	rates := slices.Repeat([]float64{1}, nodes)
	for _, link := range strings.Split(n.Slower, ",") {
		number, ratio, _ := strings.Cut(link, ":")
		node, err := strconv.Atoi(number)
		rate, badRate := strconv.ParseFloat(ratio, 64)
		if err != nil || badRate != nil || node < 0 || node >= nodes || !(rate >= 1e-6 && rate <= 1) || rates[node] < 1 {
			return nil, fmt.Errorf("sim: slower link %q: want one of nodes 0 to %d once, and its rate over that of the others, 1e-6 to 1, such as 0:0.5", link, nodes-1)
		}
		rates[node] = rate
	}
	return rates, nil
}

// time returns the nanoseconds of the messages of a plan whose elements have so many bytes.
func (n Network) time(c Cost, element float64) float64 {
	nodes := c.Nodes
	if nodes == nil {
		nodes = slices.Repeat([]NodeRound{{Messages: 1}}, c.C1)
		if c.C1 > 0 {
			nodes[0].Elements = float64(c.C2)
		}
	}
	ns := 0.0
	for _, x := range nodes {
		ns += n.Round(x.Messages, x.Elements*element)
	}
	return ns
}

// Round returns the nanoseconds of a round in which the busiest node exchanges so many messages, and bytes in them.
func (n Network) Round(messages int, bytes float64) float64 {
	if messages == 0 {
		return 0
	}
	return float64(n.Latency) + float64(messages)*float64(n.Overhead) + float64(n.Gap)*bytes*float64(time.Second)
}

// Validate returns an error unless times are 0 to an hour, and one of them is above 0.
func (n Network) Validate() error {
	for _, d := range []time.Duration{n.Latency, n.Overhead} {
		if d < 0 || d > time.Hour {
			return fmt.Errorf("sim: network with a latency or overhead of %v: want 0 to %v", d, time.Hour)
		}
	}
	if err := n.Gap.Validate(); err != nil {
		return fmt.Errorf("sim: network with a time per byte of %w", err)
	}
	if n == (Network{Slower: n.Slower}) {
		return fmt.Errorf("sim: network without times: want a latency, an overhead or a time per byte")
	}
	return nil
}

// String returns the values with their names, such as "L 20µs, o 2µs, G 0.8466 ns/B".
func (n Network) String() string {
	text := fmt.Sprintf("L %v, o %v, G %v", n.Latency, n.Overhead, n.Gap)
	if n.Slower != "" {
		text += ", slower " + n.Slower
	}
	return text
}

// Goodput is what the headers of Ethernet, IP and TCP leave of a link's rate for data.
const Goodput = 0.945

// Presets are names that [ParseNetwork] reads.
var Presets = []string{"100mbit/1ms", "10gbit/20us", "200gbit/2us", "wan", "process"}

// ProcessGamma is a usual γ, for the preset "process": one of most fields, within a factor of 3.
const ProcessGamma = PerByte(0.1e-9)

var rateLatency = regexp.MustCompile(`^([0-9.]+)(k|m|g|t)bit/([0-9.]+(?:ns|us|µs|ms|s))$`)

// ParseNetwork reads a network RATE/LATENCY such as "10gbit/20us", or "wan", which is 1gbit/30ms, or "process": between
// processors in one process messages take no time for their bytes, which stay where they are. Otherwise data get
// [Goodput] of the rate. The overhead of a message is a tenth of the latency, but 0.5 µs at least, as with a network
// card that reads memory by itself, and 20 µs at most, as with a kernel's TCP. After a comma it reads [Network].Slower.
func ParseNetwork(name string) (Network, error) {
	text, slower, named := strings.Cut(name, ",")
	bad := fmt.Errorf("sim: network %q: want a rate and a latency such as %v", name, Presets)
	if named && slower == "" {
		return Network{}, bad
	}
	switch text {
	case "wan":
		text = "1gbit/30ms"
	case "process":
		return Network{Latency: 100 * time.Nanosecond, Overhead: 50 * time.Nanosecond, Slower: slower}, nil
	}
	parts := rateLatency.FindStringSubmatch(text)
	if parts == nil {
		return Network{}, bad
	}
	rate, err := strconv.ParseFloat(parts[1], 64)
	rate *= map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}[parts[2]]
	latency, errL := time.ParseDuration(parts[3])
	if err != nil || errL != nil || rate < 1 || rate > math.MaxInt64 {
		return Network{}, bad
	}
	n := Network{Latency: latency, Overhead: min(max(latency/10, 500*time.Nanosecond), 20*time.Microsecond), Gap: PerByte(8 / (rate * Goodput)), Slower: slower}
	if n.Validate() != nil {
		return Network{}, bad
	}
	return n, nil
}
