package volley

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"volley/internal/located"
	"volley/plan"
)

// maxReport is the length of the longest report that is read: it has 64 bytes for each
// round, of which no plan has more than 2^20.
const maxReport = 96 << 20

// A ReportError says why a text is no report: its Line, from 1, and the Reason.
type ReportError = located.Error

// ReadReport reads the JSON form of a report, such as volley encode --json prints. Keys that
// are no fields of a [Report] are passed over. The error is a *[ReportError], also where the
// rounds do not add up to C1 and C2, or that of r.
func ReadReport(r io.Reader) (*Report, error) {
	report, err := readReport(r)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// essential are the fields that reports have had from the beginning, and the least numbers
// that they may have.
var essential = map[string]int64{
	"algorithm": 0, "field": 0, "k": 1, "processors": 1, "ports": 1, "c1": 0, "c2": 0,
	"packet_bytes": 0, "symbols_per_packet": 0, "rounds": 0, "seconds": 0,
}

func readReport(r io.Reader) (*Report, error) {
	v, err := located.Parse(r, maxReport)
	if err != nil {
		return nil, err
	}
	o, err := v.Object()
	if err != nil {
		return nil, err
	}
	report := new(Report)
	for f, member := range reflect.ValueOf(report).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		least, need := essential[name]
		v, ok := o.Find(name)
		if !ok {
			if need {
				_, err := o.Get(name)
				return nil, err
			}
			continue
		}
		if err := readMember(v, member.Addr().Interface(), least); err != nil {
			return nil, err
		}
	}
	if _, ok := o.Find("c2_packets"); !ok && report.Pieces <= 1 { // older reports leave it out there
		report.C2Packets = float64(report.C2)
	}
	return report, report.check(o)
}

// readMember reads a field of a report, a number of which is not below least.
func readMember(v located.Value, to any, least int64) (err error) {
	const most = 1 << 60 // leaves room to add
	switch to := to.(type) {
	case *string:
		*to, err = v.Text()
	case *bool:
		*to, err = v.Bool()
	case *int:
		*to, err = readInt(v, least)
	case *int64:
		*to, err = v.Int(least, most)
	case *float64:
		*to, err = v.Float(0, most)
	case *[]int:
		return v.List(func(v located.Value) error {
			n, err := readInt(v, 0)
			*to = append(*to, n)
			return err
		})
	case *[]string:
		return v.List(func(v located.Value) error {
			const most = 1000
			if len(*to) == most {
				return v.Errorf("want at most %d", most)
			}
			s, err := v.Text()
			*to = append(*to, s)
			return err
		})
	case *[]plan.RoundTraffic:
		*to = []plan.RoundTraffic{} // not null in JSON
		return v.List(func(v located.Value) error {
			x, err := readRound(v)
			*to = append(*to, x)
			return err
		})
	default:
		panic(fmt.Sprintf("volley: reports have fields of type %T, which are not read", to))
	}
	return err
}

func readInt(v located.Value, least int64) (int, error) {
	n, err := v.Int(least, math.MaxInt32)
	return int(n), err
}

func readRound(v located.Value) (x plan.RoundTraffic, err error) {
	o, err := v.Object()
	if err != nil {
		return x, err
	}
	for _, member := range []struct {
		key string
		to  *int
	}{{"largest_message", &x.Largest}, {"messages", &x.Messages}} {
		v, err := o.Get(member.key)
		if err == nil {
			*member.to, err = readInt(v, 0)
		}
		if err != nil {
			return x, err
		}
	}
	if (x.Largest == 0) != (x.Messages == 0) {
		return x, v.Errorf("%d messages, the largest of %d elements: want both 0 or none", x.Messages, x.Largest)
	}
	return x, nil
}

// check returns an error where fields of a report, each of which is right by itself,
// contradict each other.
func (r *Report) check(o located.Object) error {
	wrong := func(key, format string, args ...any) error {
		v, err := o.Get(key)
		if err != nil {
			return err
		}
		return v.Errorf(format, args...)
	}
	counted := *r
	counted.total()
	switch {
	case r.Processors < max(r.K, r.Sinks):
		return wrong("processors", "%d, for %d sources and %d sinks", r.Processors, r.K, r.Sinks)
	case len(r.Columns) > r.Processors:
		return wrong("columns", "%d, for %d processors", len(r.Columns), r.Processors)
	case r.PacketBytes > 0 && (r.SymbolsPerPacket == 0 || r.PacketBytes%r.SymbolsPerPacket != 0), r.PacketBytes < r.SymbolsPerPacket:
		return wrong("packet_bytes", "%d, for %d symbols", r.PacketBytes, r.SymbolsPerPacket)
	case counted.C1 != r.C1:
		return wrong("c1", "%d, and there are messages in %d of the rounds", r.C1, counted.C1)
	case counted.C2 != r.C2:
		return wrong("c2", "%d, and the largest messages of the rounds have %d elements", r.C2, counted.C2)
	case !(math.Abs(counted.C2Packets-r.C2Packets) <= 1e-9*counted.C2Packets):
		return wrong("c2_packets", "%g, and c2 is %d pieces, %d to a packet", r.C2Packets, r.C2, r.Pieces)
	}
	return nil
}
