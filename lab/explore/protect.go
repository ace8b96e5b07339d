package explore

import (
	"context"
	"errors"
	"strings"

	"volley"
	"volley/group"
	"volley/group/protection"
	"volley/internal/selection"
	"volley/sim"
)

// mostEstimated is the most nodes of which the page estimates times: those of more take seconds to compute.
const mostEstimated = 64

type protectRequest struct {
	Nodes    int    `json:"nodes"`
	Tolerate int    `json:"tolerate"`
	Size     string `json:"size"`    // of the data of a node
	Network  string `json:"network"` // empty: the usual one
	Lost     []int  `json:"lost"`    // nodes
}

// protectAnswer is what protecting a group takes by the model of a network, and bringing back what is lost.
type protectAnswer struct {
	Network  string                 `json:"network"`
	Protect  *protection.CodingCost `json:"protect"`
	Recovery *protection.CodingCost `json:"recovery"` // null where nothing is lost, or too much
}

// estimateGroup answers with the times of a group.
func estimateGroup(_ context.Context, r protectRequest) (*protectAnswer, error) {
	if r.Nodes > mostEstimated {
		return nil, selection.Markf("nodes", "%d nodes: the page estimates times of %d at most", r.Nodes, mostEstimated)
	}
	bytes, err := selection.ParseSize(r.Size)
	if err == nil && (bytes < 1 || bytes > largestPacket) {
		err = errors.New("want 1B to 1PiB")
	}
	if err != nil {
		return nil, selection.Markf("size", "%q: %w", r.Size, err)
	}
	network := volley.DefaultNetwork()
	if name := strings.TrimSpace(r.Network); name != "" {
		if network, err = sim.ParseNetwork(name); err == nil && network.Slower != "" {
			err = errors.New("plans of groups are for links of one rate: leave slower links out")
		}
		if err != nil {
			return nil, selection.Mark("network", err)
		}
	}
	a := &protectAnswer{Network: network.String()}
	a.Protect, a.Recovery, err = group.Estimate(r.Nodes, r.Tolerate, bytes, network, r.Lost)
	return a, selection.Mark("tolerate", err)
}
