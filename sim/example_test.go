package sim_test

import (
	"context"
	"fmt"
	"log"

	"volley"
	"volley/sim"
)

// A plan costs rounds and packets, and by the model of a network a time.
func ExampleCount() {
	network, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		log.Fatal(err)
	}
	a, err := volley.MDS(8, 8)
	if err != nil {
		log.Fatal(err)
	}
	encoder, err := volley.NewEncoder(context.Background(), a, volley.WithNetwork(network), volley.WithAlgorithm("prepare-and-shoot"))
	if err != nil {
		log.Fatal(err)
	}
	p, err := encoder.Plan(context.Background(), nil, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	cost := sim.Count(p)
	fmt.Printf("%d rounds, %v packets, %v\n", cost.C1, cost.PacketC2(), sim.Model{Network: network, Bytes: 1 << 20, SymbolBytes: 1}.Time(cost))
	// Output: 2 rounds, 2 packets, 3.598734ms
}
