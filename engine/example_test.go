package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"volley"
	"volley/engine"
)

// Three ranks meet and encode a packet each. Here they are goroutines; elsewhere each is a process of its own, at any
// machine, which has been given its rank, where to meet, and the secret.
func ExampleJoin() {
	secret, meet := engine.NewSecret(), freeAddress()
	var ranks sync.WaitGroup
	errs := make([]error, 3)
	for rank := range errs {
		ranks.Go(func() {
			errs[rank] = encode(engine.Run{Rank: rank, Size: 3, Meet: meet, Secret: secret, Timeout: time.Minute})
		})
	}
	ranks.Wait()
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
	// Output: rank 0 has 5 bytes
}

func encode(run engine.Run) error {
	ctx := context.Background()
	t, err := engine.Join(ctx, run)
	if err != nil {
		return err
	}
	defer t.Close()
	coded, _, err := volley.Encode(ctx, t, volley.MDS(3, 3), fmt.Appendf(nil, "own %d", run.Rank))
	if err == nil && run.Rank == 0 {
		fmt.Println("rank 0 has", len(coded), "bytes")
	}
	return err
}

// freeAddress returns an address of this machine at which nobody listens. Between machines it is one that you choose.
func freeAddress() string {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer at.Close()
	return at.Addr().String()
}
