package volley

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"volley/files"
	"volley/internal/located"
)

// maxReport is the length of the longest report that is read: 64 bytes for each round of at most 2^20.
const maxReport = 96 << 20

// ReadReport reads the JSON form of a report, such as volley encode --json prints. Keys that
// are no fields of a [Report] are passed over. The error is a *[files.FormatError], also where the
// rounds do not add up to C1 and C2, or that of r.
func ReadReport(r io.Reader) (*Report, error) {
	text, err := located.Read(r, maxReport)
	if err != nil {
		return nil, err
	}
	report := new(Report)
	if err := json.Unmarshal(text, report); err != nil {
		return nil, located.Wrong(text, err)
	}
	if report.C2Packets == 0 && report.Pieces <= 1 { // older reports leave it out there
		report.C2Packets = float64(report.C2)
	}
	if err := report.check(); err != nil {
		return nil, &files.FormatError{Reason: err.Error()}
	}
	return report, nil
}

// check returns an error where fields of a report cannot be, or contradict each other.
func (r *Report) check() error {
	least := map[string]int64{"k": 1, "processors": 1, "ports": 1}
	for f, v := range reflect.ValueOf(r).Elem().Fields() {
		limit := int64(1 << 60) // leaves room to add
		if v.Kind() == reflect.Int {
			limit = math.MaxInt32
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if v.CanInt() && (v.Int() < least[name] || v.Int() > limit) || v.CanFloat() && !(v.Float() >= 0 && v.Float() <= float64(limit)) {
			return fmt.Errorf("%s: %v: want %d to %d", name, v, least[name], limit)
		}
	}
	for i, c := range r.Columns {
		if c < 0 || c >= r.Processors {
			return fmt.Errorf("columns[%d]: %d, for %d processors", i, c, r.Processors)
		}
	}
	for i, x := range r.Rounds {
		if x.Largest < 0 || x.Largest > math.MaxInt32 || x.Messages < 0 || x.Messages > math.MaxInt32 || (x.Largest == 0) != (x.Messages == 0) {
			return fmt.Errorf("rounds[%d]: %d messages, the largest of %d elements: want both 0, or both 1 to %d", i, x.Messages, x.Largest, math.MaxInt32)
		}
	}
	counted := *r
	counted.total()
	switch {
	case r.Algorithm == "" || r.Field == "" || r.Rounds == nil:
		return fmt.Errorf("algorithm, field or rounds are missing")
	case r.Processors < max(r.K, r.Sinks):
		return fmt.Errorf("processors: %d, for %d sources and %d sinks", r.Processors, r.K, r.Sinks)
	case len(r.Columns) > r.Processors:
		return fmt.Errorf("columns: %d, for %d processors", len(r.Columns), r.Processors)
	case r.PacketBytes > 0 && (r.SymbolsPerPacket == 0 || r.PacketBytes%r.SymbolsPerPacket != 0), r.PacketBytes < r.SymbolsPerPacket:
		return fmt.Errorf("packet_bytes: %d, for %d symbols", r.PacketBytes, r.SymbolsPerPacket)
	case counted.C1 != r.C1:
		return fmt.Errorf("c1: %d, and there are messages in %d of the rounds", r.C1, counted.C1)
	case counted.C2 != r.C2:
		return fmt.Errorf("c2: %d, and the largest messages of the rounds have %d elements", r.C2, counted.C2)
	case !(math.Abs(counted.C2Packets-r.C2Packets) <= 1e-9*counted.C2Packets):
		return fmt.Errorf("c2_packets: %g, and c2 is %d pieces, %d to a packet", r.C2Packets, r.C2, r.Pieces)
	}
	return nil
}
