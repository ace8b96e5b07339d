// Package gauges keeps what reports of groups say in numbers, and writes it as metrics.
package gauges

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"volley/group"
	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/grouptext"
	"volley/internal/printable"
)

// Help says what each gauge is. OpenMetrics and the text format of a node exporter write gauges alike.
var Help = map[string]string{
	"success":                    "1 where the last run ended with exit code 0, or else 0",
	"exit_code":                  "of the last run",
	"last_run_timestamp_seconds": "when the last run ended",
	LastSuccess:                  "when a run last ended with exit code 0",
	"duration_seconds":           "of the last run",
	"generation":                 "of the protection",
	"nodes":                      "of the group",
	"tolerated_nodes":            "that may be lost at a time",
	"may_lose_nodes":             "that may be lost now",
	"lost_nodes":                 "that are lost, failing or unreachable",
	"damaged_nodes":              "that are damaged, stale or foreign",
	"lost_files":                 "that are missing, damaged or stale at nodes that are not lost",
	"changed_files":              "that users have changed, and moved, since the last protect",
	"deleted_files":              "that users have deleted since the last protect",
	"new_files":                  "that are not protected yet",
	"at_risk_files":              "that would not come back where one more node is lost than may be",
	"read_timestamp_seconds":     "since when all of every node was read, by verify; 0: some of one never was",
	"data_bytes":                 "that are protected, of all nodes",
	"parity_bytes":               "at each node",
	"sent_bytes":                 "by the busiest node",
	"recovered_files":            "in the last run",
}

// findingGauges are those that count findings of a kind.
var findingGauges = map[string]string{
	group.Missing: "lost_files", group.Damaged: "lost_files", group.Stale: "lost_files",
	group.Changed: "changed_files", group.Moved: "changed_files", group.Deleted: "deleted_files", group.New: "new_files",
}

// LastSuccess is the gauge of when a run last ended well.
const LastSuccess = "last_success_timestamp_seconds"

// FromReport returns the gauges of a report of protect, verify, recover or resize; none of any other.
func FromReport(report any) map[string]float64 {
	v := map[string]float64{}
	countNodes := func(list []group.NodeReport) {
		v["nodes"], v["lost_nodes"], v["damaged_nodes"] = float64(len(list)), 0, 0
		for _, gauge := range findingGauges {
			v[gauge] = 0
		}
		for _, n := range list {
			switch n.Status {
			case group.Intact, group.Changed:
			case group.Lost, group.Failing, group.Unreachable:
				v["lost_nodes"]++
			default:
				v["damaged_nodes"]++
			}
			for _, f := range n.Findings {
				if gauge := findingGauges[f.Kind]; gauge != "" {
					v[gauge]++
				}
			}
		}
	}
	switch r := report.(type) {
	case *group.ResizeReport:
		return FromReport(r.ProtectReport)
	case *group.ProtectReport:
		v["nodes"], v["tolerated_nodes"], v["generation"] = float64(r.Nodes), float64(r.Tolerate), float64(r.Generation)
		v["data_bytes"], v["parity_bytes"], v["sent_bytes"] = float64(r.DataBytes), float64(r.ParityBytes), float64(r.Traffic.MostSent)
	case *group.VerifyReport:
		countNodes(r.Nodes)
		if r.Protected {
			v["tolerated_nodes"], v["may_lose_nodes"], v["generation"] = float64(r.Tolerate), float64(r.MayLose), float64(r.Generation)
			v["at_risk_files"] = 0
			for _, x := range r.Risks {
				v["at_risk_files"] += float64(x.Files)
			}
			read, _ := grouptext.LongestUnread(r)
			if v["read_timestamp_seconds"] = 0; !read.IsZero() {
				v["read_timestamp_seconds"] = float64(read.Unix())
			}
		}
	case *group.RecoverReport:
		if r.Matched == 0 { // single files were brought back: the nodes were not examined
			countNodes(r.Nodes)
		}
		v["generation"], v["recovered_files"], v["sent_bytes"] = float64(r.Generation), float64(r.Files), float64(r.Traffic.MostSent)
	}
	return v
}

// Gauges keeps the gauges of a run. Its methods may be called at once.
type Gauges struct {
	mu     sync.Mutex // guards what follows
	values map[string]float64
}

// Values returns the gauges so far.
func (r *Gauges) Values() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	values := map[string]float64{}
	maps.Copy(values, r.values)
	return values
}

// Note keeps the values of a report. Of several sets it keeps the sum, or what is the worst of them.
func (r *Gauges) Note(values map[string]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[string]float64{}
	}
	for name, x := range values {
		switch old, known := r.values[name]; {
		case !known:
		case slices.Contains([]string{"generation", "tolerated_nodes", "may_lose_nodes", "read_timestamp_seconds"}, name):
			x = min(x, old)
		case slices.Contains([]string{"parity_bytes", "sent_bytes"}, name):
			x = max(x, old)
		default:
			x += old
		}
		r.values[name] = x
	}
}

// Write writes to a file the gauges of a run of a verb that has ended, over those of an earlier one, whose last success stays where the run failed.
func (r *Gauges) Write(file, verb string, begun time.Time, code int) error {
	v, finished := r.Values(), float64(time.Now().Unix())
	v["success"], v["exit_code"], v["last_run_timestamp_seconds"], v["duration_seconds"] = 0, float64(code), finished, time.Since(begun).Seconds()
	if code == exit.OK {
		v["success"], v[LastSuccess] = 1, finished
	} else {
		earlier, _ := os.ReadFile(file) // or there is none
		for line := range strings.Lines(string(earlier)) {
			var instant float64
			if n, _ := fmt.Sscanf(line, sample(LastSuccess, verb)+"%g", &instant); n == 1 {
				v[LastSuccess] = instant
			}
		}
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(v)) {
		printable.Fprintf(&b, "# HELP volley_%s %s\n# TYPE volley_%s gauge\n%s%g\n", name, Help[name], name, sample(name, verb), v[name])
	}
	printable.Fprintf(&b, "# EOF\n")
	return disk.WriteMode(disk.OS, file, b.Bytes(), 0o644) // an exporter is another user
}

// sample returns a line of the metrics up to its value.
func sample(name, verb string) string { return fmt.Sprintf("volley_%s{verb=%q} ", name, verb) }
