package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// A Cell is what was measured on packets of one size: all ways to encode, in turns in one
// run. Times are in seconds, sizes in bytes.
type Cell struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	MPI     string `json:"mpi"`             // the library
	Network string `json:"network"`         // as the caller says
	Pause   string `json:"pause,omitempty"` // before each run; empty: none, the cores are warm

	K      int     `json:"k"`
	Matrix string  `json:"matrix"`
	Field  string  `json:"field"`
	Size   int     `json:"size"`            // of a packet
	Bound  float64 `json:"bound,omitempty"` // what the links allow; 0: unknown

	Ways []Way `json:"ways"`
}

// A Way is one way to encode, and how long it took. The seconds of a run are those of its
// slowest rank.
type Way struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"` // the median of the runs
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Runs    int     `json:"runs"`               // that count
	LeftOut string  `json:"left_out,omitempty"` // why
	Wrong   int     `json:"wrong,omitempty"`    // results, of all runs and ranks

	Dropped float64 `json:"dropped,omitempty"` // packets of the network, in a run
	CPU     float64 `json:"cpu,omitempty"`     // seconds, of all ranks together in a run: the median

	Kernel string `json:"kernel,omitempty"` // of the ways through a window: the instructions that code

	// Of Volley alone. Seconds are those of the bare encode: without agreement and check.
	Plan  string  `json:"plan,omitempty"` // algorithm and parameters
	C1    int     `json:"c1,omitempty"`
	C2    float64 `json:"c2,omitempty"`    // packets
	Model float64 `json:"model,omitempty"` // seconds
	Later float64 `json:"later,omitempty"` // up to 2026-11-30: agreement of an encoder's second and later runs

	// Of Volley as it runs by default: Seconds are those of encode and check.
	First float64 `json:"first,omitempty"` // agreement
	Check float64 `json:"check,omitempty"`
}

// setting is what cells have in common that are of the same measurement.
func (c Cell) setting() string {
	return fmt.Sprint(c.Network, c.Pause, c.K, c.Matrix, c.Field, c.Size)
}

// way returns the way of a name if it was measured.
func (c Cell) way(name string) (Way, bool) {
	i := slices.IndexFunc(c.Ways, func(w Way) bool { return w.Name == name && w.LeftOut == "" })
	if i < 0 {
		return Way{}, false
	}
	return c.Ways[i], true
}

// best returns the fastest of the ways of these names that were measured.
func (c Cell) best(names ...string) (best Way, ok bool) {
	for _, name := range names {
		if w, found := c.way(name); found && (!ok || w.Seconds < best.Seconds) {
			best, ok = w, true
		}
	}
	return best, ok
}

// ratio returns the time of a way over that of the best of the others; 0 where it or all
// of them were not measured.
func (c Cell) ratio(name string, others ...string) float64 {
	w, ok := c.way(name)
	other, found := c.best(others...)
	if !ok || !found {
		return 0
	}
	return w.Seconds / other.Seconds
}

// writeCells writes a JSON object on a line for each cell.
func writeCells(w io.Writer, cells []Cell) error {
	e := json.NewEncoder(w)
	for _, c := range cells {
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	return nil
}

// readCells reads what writeCells writes. Of cells for the same setting it keeps the
// last.
func readCells(data []byte) ([]Cell, error) {
	var cells []Cell
	at := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	for {
		var c Cell
		switch err := d.Decode(&c); {
		case err == io.EOF:
			return cells, nil
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:d.InputOffset()], []byte("\n")), err)
		}
		key := c.setting()
		if i, again := at[key]; again {
			cells[i] = c
			continue
		}
		at[key] = len(cells)
		cells = append(cells, c)
	}
}

// digits writes three digits, or all those before the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// span writes a time in seconds; 0 is none.
func span(seconds float64) string {
	switch {
	case seconds == 0:
		return ""
	case seconds < 0.9995e-3:
		return digits(1e6*seconds) + " µs"
	case seconds < 0.9995:
		return digits(1e3*seconds) + " ms"
	}
	return digits(seconds) + " s"
}
