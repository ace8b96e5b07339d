package transport_test

import (
	"context"
	"fmt"
	"log"

	"volley/transport"
	"volley/transport/local"
)

// Rank 0 sends, and rank 1 receives. How they are connected makes no difference.
func Example() {
	err := local.Run(context.Background(), 2, func(ctx context.Context, t transport.Transport) error {
		if t.Rank() == 0 {
			return transport.Send(ctx, t, 1, transport.Tag{}, []byte("hello"))
		}
		text := make([]byte, 5)
		err := transport.Receive(ctx, t, 0, transport.Tag{}, text)
		fmt.Printf("%s\n", text)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: hello
}
