package protection

import (
	"strings"
	"time"

	"volley/files"
)

// An Identity is which node of which group a directory says that it is. Node is -1 where it says nothing.
type Identity struct {
	Group string `json:"group"`
	Node  int    `json:"node"`
	Nodes int    `json:"nodes"`          // of the group; 0: not known
	Step  int64  `json:"step,omitempty"` // of the snapshot that says so, of a root
	SetIndex
	Next  Place `json:"next,omitzero"`   // in the group that it is resized to
	Held  bool  `json:"held,omitempty"`  // there is a manifest, so that a protect has come that far
	Empty bool  `json:"empty,omitempty"` // there is no directory, or nothing in it: a node that is it is lost

	Name        files.Name   `json:"name,omitempty"`   // of the directory, by which its group knows it: its whole path, or as Names of the settings has it
	Names       []files.Name `json:"names,omitempty"`  // of the directories of the group when it was last protected, by node
	FormerNames []files.Name `json:"before,omitempty"` // of those of the epoch before, where the group has been resized
}

// A SetIndex says which of several groups, chosen together by package sets, a group is. The zero one says nothing.
type SetIndex struct {
	Set  int `json:"set,omitempty"` // from 0
	Sets int `json:"sets,omitempty"`
}

// MostSets is how many groups may be chosen together.
const MostSets = 1 << 12

// Valid reports whether there may be such a part.
func (p SetIndex) Valid() bool {
	return p == SetIndex{} || 0 <= p.Set && p.Set < p.Sets && p.Sets <= MostSets
}

// A Place is which node of how many a directory is.
type Place struct {
	Node  int `json:"node"`
	Nodes int `json:"nodes"` // of the group
}

// A Finding is what is the matter with a file, or with something of Volley's.
type Finding struct {
	Path   files.Name `json:"path"`
	Kind   string     `json:"what"`
	Target files.Name `json:"to,omitempty"` // where what has moved lies now; "": in several directories
	Reason string     `json:"why,omitempty"`
}

// Recovered is what Recover has brought back at a node.
type Recovered struct {
	Files    int   `json:"files"`
	NonFiles int   `json:"others"` // directories and links: names that are not those of files
	Parity   int64 `json:"parity_bytes"`
	Records  bool  `json:"records"` // any of them, or the manifest
}

// A Risk is what would not come back at a node where it and as many others are lost as are one more than may be.
type Risk struct {
	Node  int          `json:"node"`
	Dir   string       `json:"dir"`
	Files int          `json:"files"`
	Bytes int64        `json:"bytes"` // of these
	Names []files.Name `json:"names"` // of the first of them: MostRisks at most
}

// An Accident is what has happened to many files of a node, and looks like an accident.
type Accident struct {
	Node int    `json:"node"`
	Dir  string `json:"dir"`
	Kind string `json:"what"` // Changed or Deleted of package group
	Text string `json:"why"`  // how many files, and the first of them
}

func (x Accident) String() string { return x.Dir + " has " + x.Text }

// AccidentsText says what protect refuses to make permanent.
func AccidentsText(list []Accident) string {
	var texts []string
	for _, x := range list {
		texts = append(texts, x.String())
	}
	return "this looks like an accident, which protect would make permanent: " + strings.Join(texts, "; ")
}

// A Reading says which part of a node was read the longest ago, and when: everything was read since.
type Reading struct {
	Since time.Time `json:"since"`
	Part  int       `json:"part"`
	Parts int       `json:"parts"`
}

// A CodingCost is what making parity takes, or bringing back nodes.
type CodingCost struct {
	StoredBytes int64   `json:"stored_bytes"` // of parity, at each node
	SentBytes   int64   `json:"sent_bytes"`   // by the busiest node, or received
	Messages    int     `json:"messages"`     // of that node
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"model_seconds"`
	Plan        string  `json:"plan"`
}

// PlanTraffic is what runs of plans have sent.
type PlanTraffic struct {
	Plan     string `json:"plan"`
	MostSent int64  `json:"most_sent"` // bytes, by the busiest node

	Sent []int64 `json:"-"` // by node here
}
