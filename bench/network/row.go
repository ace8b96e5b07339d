package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// The peers, in the order of tables.
const (
	allgather = "allgather" // MPI_Allgather, then every rank codes its own packet
	ring      = "ring"      // packets go around, each is coded while it travels on
	gather    = "gather"    // MPI_Gather, the root codes, MPI_Scatter
	alltoall  = "alltoall"  // MPI_Alltoall of packets that the sender has multiplied, then sums
)

var peerNames = []string{allgather, ring, gather, alltoall}

const ours = "volley"

// A Row is what was measured of one way to encode, on packets of one size. Times are in
// seconds, sizes in bytes.
type Row struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	MPI     string `json:"mpi"`            // the library
	Link    string `json:"link,omitempty"` // of each host, as the caller says: rate, one-way delay

	K      int    `json:"k"`
	Matrix string `json:"matrix"`
	Field  string `json:"field"`
	Size   int    `json:"size"` // of a packet

	Who   string  `json:"who"`             // volley or a peer
	Plan  string  `json:"plan,omitempty"`  // of volley: algorithm and parameters
	Ports int     `json:"ports,omitempty"` // p, of volley
	C1    int     `json:"c1"`              // rounds; of a peer the fewest that its messages take, one at a time
	C2    float64 `json:"c2"`              // packets, as C1

	Beta      float64 `json:"beta"` // measured in the same run with messages on as many ports
	Tau       float64 `json:"tau"`  // per byte
	Predicted float64 `json:"predicted"`

	Seconds float64 `json:"seconds"` // the median of the runs; each is that of the slowest rank
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Runs    int     `json:"runs"` // that count

	// Agreement is how long the agreement took with which a run of volley begins; it is not
	// in the times.
	Agreement float64 `json:"agreement,omitempty"`

	LeftOut string `json:"left_out,omitempty"`

	Faster  map[string]float64 `json:"faster,omitempty"`  // than which peer how many times
	Dropped *float64           `json:"dropped,omitempty"` // packets of the network, a run; nil: unknown
	Wrong   int                `json:"wrong"`             // coded packets, of all runs and ranks
}

// Ratio is the time over what the model says.
func (r Row) Ratio() float64 { return r.Seconds / r.Predicted }

// setting is what rows have in common that may be compared.
func (r Row) setting() string { return fmt.Sprint(r.K, r.Link, r.Matrix, r.Field, r.Size) }

// predict sets what the model says: C1·β + C2·W·τ.
func (r *Row) predict() {
	r.Predicted = float64(r.C1)*r.Beta + r.C2*float64(r.Size)*r.Tau
}

// compare sets how many times faster than the peers the rows of volley are, of those of
// one setting.
func compare(rows []Row) {
	for i := range rows {
		if rows[i].Who != ours || rows[i].LeftOut != "" {
			continue
		}
		rows[i].Faster = map[string]float64{}
		for _, r := range rows {
			if r.Who != ours && r.LeftOut == "" {
				rows[i].Faster[r.Who] = r.Seconds / rows[i].Seconds
			}
		}
	}
}

// writeRows writes a JSON object on a line for each row.
func writeRows(w io.Writer, rows []Row) error {
	e := json.NewEncoder(w)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// readRows reads what writeRows writes. Of rows for the same thing it keeps the last.
func readRows(data []byte) ([]Row, error) {
	var rows []Row
	at := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	for {
		var r Row
		switch err := d.Decode(&r); {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("result %d: %w", len(rows)+1, err)
		}
		key := fmt.Sprint(r.setting(), r.Who, r.Plan, r.Ports)
		if i, again := at[key]; again {
			rows[i] = r
			continue
		}
		at[key] = len(rows)
		rows = append(rows, r)
	}
}

// digits writes three digits, or all those before the point.
func digits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
