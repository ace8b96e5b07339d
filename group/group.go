package group

import (
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/sim"
)

// Estimate returns what the model of a network says of a group whose nodes have so many bytes of data each: of making
// parity, and of bringing back the nodes that are lost, both without reading and writing files. Possible of recovery is
// false where nothing is lost, or too much. The error says why there can be no such layout.
func Estimate(nodes, tolerate int, layout string, bytes int64, network sim.Network, lost []int) (protect, recovery Cost, err error) {
	o := session.Defaulted(Options{Network: network})
	return erasure.Estimate(nodes, tolerate, layout, bytes, &erasure.Setting{Memory: o.Memory, Network: o.Network}, lost)
}
