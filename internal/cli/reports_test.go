package cli

import (
	"encoding/json"

	"volley/group/site"
	"volley/internal/cli/ranks"
)

// What verbs print as JSON: others read it by these names.

type setText struct {
	Set     int             `json:"set"`
	Sets    int             `json:"sets"`
	Dirs    []string        `json:"dirs"`
	Domains []string        `json:"domains"`
	Notes   []string        `json:"notes"`
	Report  json.RawMessage `json:"report"`
	Error   string          `json:"error"`
}

type checkText struct {
	Well  bool         `json:"well"`
	Hosts []hostText   `json:"hosts"`
	Pairs []ranks.Pair `json:"pairs"`
	*site.Judgement
	Wrong []wrongText `json:"wrong"`
}

type hostText struct {
	Host    string           `json:"host"`
	Version string           `json:"version"`
	SSH     *float64         `json:"ssh_seconds"`
	Clock   *float64         `json:"clock_seconds"`
	State   []site.FaultKind `json:"state"`
	Nodes   []struct {
		Dir string `json:"dir"`
		*site.Inspection
	} `json:"nodes"`
}

type wrongText struct {
	At string `json:"at"`
	site.Fault
	Next string `json:"next"`
}

// A memoryList is what a program says of its memory to volley buffers.
type memoryList struct {
	Buffers []memoryPart `json:"buffers"`
	Parity  *memoryPart  `json:"parity"`
	Room    bool         `json:"room"`
}

type memoryPart struct {
	FD     int   `json:"fd"`
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}
