package tcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// refusals are connections that were refused, of which the log has not told. Who scans ports makes hundreds.
type refusals struct {
	count   int
	from    string         // the first
	because map[string]int // the first mostReasons, and how often
}

const mostReasons = 8

// refused has the log tell of a connection, in a line with those that follow soon.
func (l *Listener) refused(who string, err error) {
	why := plain(err).Error()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.refusals
	if r.count == 0 {
		r.from, r.because = who, map[string]int{}
		time.AfterFunc(l.limits.Refused, l.tellRefused)
	}
	r.count++
	if r.because[why] > 0 || len(r.because) < mostReasons {
		r.because[why]++
	}
}

func (l *Listener) tellRefused() {
	l.mu.Lock()
	r := l.refusals
	l.refusals = refusals{}
	l.mu.Unlock()
	if r.count == 0 {
		return
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(r.because)) {
		reasons = append(reasons, fmt.Sprintf("%s (%d)", why, r.because[why]))
	}
	l.log.Warn("refused connections", "count", r.count, "first", r.from, "because", strings.Join(reasons, ", "))
}
