package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// An event is one of traceEvents. Times are in µs.
type event struct {
	Name string     `json:"name"`
	Cat  string     `json:"cat,omitempty"`
	Ph   string     `json:"ph"`
	Ts   *float64   `json:"ts,omitempty"`
	Dur  *float64   `json:"dur,omitempty"`
	Pid  int        `json:"pid"`
	Tid  int        `json:"tid"`
	ID   *id        `json:"id2,omitempty"`
	Args *arguments `json:"args,omitempty"`
}

// arguments are what an event says besides. What is not said is nil or empty.
type arguments struct {
	Bytes      int64  `json:"bytes,omitempty"`
	Name       string `json:"name,omitempty"`    // of a row
	Partner    string `json:"partner,omitempty"` // processors, as span writes them
	Port       *int   `json:"port,omitempty"`
	Processors string `json:"processors,omitempty"`
	Rank       *int   `json:"rank,omitempty"`
	Round      *int   `json:"round,omitempty"`
	Segment    *int   `json:"segment,omitempty"`
	SortIndex  *int   `json:"sort_index,omitempty"` // of a row
}

// An id tells spans of messages apart, which may overlap. It counts within a pid.
type id struct {
	Local string `json:"local"`
}

var rowNames = map[Row]string{
	RunRow: "run", Pipeline0: "pipeline 0", Pipeline1: "pipeline 1",
}

// WriteTo writes all events as trace-event JSON: a process for each rank, a thread for each row, times from the first.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	events := r.Events()
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), a.Rank-b.Rank)
	})
	counted := &counter{writer: w}
	b := bufio.NewWriter(counted)
	b.WriteString(`{"traceEvents":[`)
	separator := "\n"
	put := func(x event) error {
		data, err := json.Marshal(x)
		b.WriteString(separator)
		b.Write(data)
		separator = ",\n"
		return err
	}
	for _, x := range names(events) {
		if err := put(x); err != nil {
			return counted.n, err
		}
	}
	for i, e := range events {
		for _, x := range e.json(i, events[0].Start) {
			if err := put(x); err != nil {
				return counted.n, err
			}
		}
	}
	b.WriteString("\n],\"displayTimeUnit\":\"ms\"}\n")
	err := b.Flush()
	return counted.n, err
}

// names returns the events that name the ranks and rows that there are.
func names(events []Event) []event {
	type processors struct{ first, last int }
	ranks := map[int]processors{}
	rows := map[int]map[Row]bool{}
	for _, e := range events {
		p, ok := ranks[e.Rank]
		if !ok {
			p, rows[e.Rank] = processors{e.First, e.Last}, map[Row]bool{}
		}
		ranks[e.Rank] = processors{min(p.first, e.First), max(p.last, e.Last)}
		rows[e.Rank][e.Row] = true
	}
	var list []event
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		p := ranks[rank]
		list = append(list,
			event{Name: "process_name", Ph: "M", Pid: rank, Args: &arguments{Name: fmt.Sprintf("rank %d (%s)", rank, span(p.first, p.last))}},
			event{Name: "process_sort_index", Ph: "M", Pid: rank, Args: &arguments{SortIndex: &rank}})
		for _, row := range slices.Sorted(maps.Keys(rows[rank])) {
			if row == Messages {
				continue // viewers make rows of their own for what may overlap
			}
			list = append(list,
				event{Name: "thread_name", Ph: "M", Pid: rank, Tid: int(row), Args: &arguments{Name: rowNames[row]}},
				event{Name: "thread_sort_index", Ph: "M", Pid: rank, Tid: int(row), Args: &arguments{SortIndex: new(int(row))}})
		}
	}
	return list
}

// codeRound is what the names of spans begin with that are coding before a round.
const codeRound = string(Code) + " round "

// span names processors.
func span(first, last int) string {
	if first == last {
		return fmt.Sprintf("processor %d", first)
	}
	return fmt.Sprintf("processors %d–%d", first, last)
}

// json returns event i as one complete span or, of a message, its begin and end.
func (e *Event) json(i int, zero int64) []event {
	micros := func(ns int64) *float64 {
		t := float64(ns) / 1000
		return &t
	}
	x := event{Name: string(e.Kind), Ph: "X", Ts: micros(e.Start - zero), Pid: e.Rank, Tid: int(e.Row), Args: e.args()}
	if e.Row != Messages {
		x.Dur = micros(e.Length)
		if e.Kind == Code && e.Round != AfterRounds {
			x.Name = fmt.Sprint(codeRound, e.Round)
		}
		return []event{x}
	}
	x.Ph, x.Cat, x.Tid, x.ID = "b", "message", int(RunRow), &id{strconv.Itoa(i)}
	end := x
	end.Ph, end.Ts, end.Args = "e", micros(e.Start+e.Length-zero), nil
	return []event{x, end}
}

// args returns what is known of an event of its kind.
func (e *Event) args() *arguments {
	args := &arguments{Processors: span(e.First, e.Last)}
	switch e.Kind {
	case Agree, Plan, Compile, Check:
		return args
	case Wait, Settle, Send, Receive:
		args.Port, args.Rank, args.Partner = &e.Port, &e.Peer, span(e.Partner, e.Partner)
		args.Round = &e.Round
	case Code:
		if e.Round != AfterRounds {
			args.Round = &e.Round
		}
	}
	args.Segment, args.Bytes = &e.Segment, e.Bytes
	return args
}

// counter counts what is written.
type counter struct {
	writer io.Writer
	n      int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.writer.Write(p)
	c.n += int64(n)
	return n, err
}
