package cli

import (
	"context"
	"strings"

	"volley/transport"
	"volley/transport/local"
)

// A comm is a way for processors to talk.
type comm struct {
	name string // as --comm takes it
	doc  string

	// ranks returns at how many ranks that many processors live.
	ranks func(processors int) int

	// run calls body for each of n ranks that is in this process, with its end
	// of the transport, and returns when all of these have ended.
	run func(ctx context.Context, n int, body func(context.Context, transport.Transport) error) error
}

// comms are the values of --comm, the default first.
var comms = []comm{
	{"local", "in this process", func(int) int { return 1 }, local.Run},
}

// findComm returns the comm of that name.
func findComm(name string) (comm, error) {
	var names []string
	for _, c := range comms {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return comm{}, usagef("--comm %q: want %s", name, strings.Join(names, " or "))
}

// commUsage is the help of --comm.
func commUsage() string {
	var list []string
	for _, c := range comms {
		list = append(list, c.name+", "+c.doc)
	}
	return "how processors talk: " + strings.Join(list, "; ")
}
