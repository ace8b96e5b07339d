package engine_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"volley/engine"
	"volley/transport"
	"volley/transport/transporttest"
)

// Three ranks meet, and two of them send a byte. Here they are goroutines; elsewhere each is a process of its own, at any
// machine, which has been given its rank, where to meet, and the secret.
func ExampleJoin() {
	at, err := transporttest.FreeAddress() // between machines it is one that you choose
	if err != nil {
		log.Fatal(err)
	}
	run := engine.Run{Size: 3, Meet: at, Secret: engine.NewSecret(), Timeout: time.Minute}
	var ranks sync.WaitGroup
	for rank := range run.Size {
		ranks.Go(func() {
			own := run
			own.Rank = rank
			if err := meet(own); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Output:
	// rank 1 is there
	// rank 2 is there
}

func meet(run engine.Run) error {
	ctx := context.Background()
	t, err := engine.Join(ctx, run)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Rank() > 0 {
		return transport.Send(ctx, t, 0, transport.Tag{}, []byte{byte(t.Rank())})
	}
	for rank := 1; rank < t.Size(); rank++ {
		own := make([]byte, 1)
		if err := transport.Receive(ctx, t, rank, transport.Tag{}, own); err != nil {
			return err
		}
		fmt.Println("rank", own[0], "is there")
	}
	return nil
}
