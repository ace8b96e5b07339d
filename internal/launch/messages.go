package launch

import "volley/group/protection"

// A Start is what a rank is told first: the verb, its options, and the node that is the rank's.
type Start struct {
	Verb  string
	Flags []Flag
	Paths []string // that the verb is given

	Dir        string // of the node, "" where there is none
	Roots      bool   // it is a root of snapshots
	Name       string // what the user calls it
	Named      string // the flags and directories by which the user has named all nodes
	Absent     string // why the node cannot be reached
	LaunchHost string `json:"From"` // the host of the launch
	Watch      bool   // somebody looks at the progress
}

// A Flag is an option of a verb with its value. One that is a list comes once for each.
type Flag struct{ Name, Value string }

// String returns the flag as a command line has it.
func (f Flag) String() string { return "--" + f.Name + "=" + f.Value }

// flag returns the value of an option; "": it is not there.
func (x *Start) flag(name string) string {
	for _, f := range x.Flags {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// A Hello is what a rank answers.
type Hello struct {
	Version string
	PID     int
	Node    protection.Identity
	Address string // by which ssh has reached the host; "": not by ssh
}

// A table is what a rank is told last.
type table struct {
	Addresses []string // of all ranks
	protection.SetIndex
}

// A message is any message of a rank.
type message struct {
	Hello    *Hello
	Listen   string
	Output   []byte `json:"Out"`
	End      *Ending
	Finished int64 `json:"Done"` // bytes more
	Added    int64 `json:"More"` // that have to be; fewer below 0
}
