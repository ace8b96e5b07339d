package collective_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"volley/collective"
	"volley/transport"
	"volley/transport/local"
)

// Every rank gets what all have.
func ExampleAllgatherValues() {
	err := local.Run(context.Background(), 3, func(ctx context.Context, t transport.Transport) error {
		all, err := collective.AllgatherValues(ctx, t, fmt.Sprint("host", t.Rank()), time.Minute)
		if err == nil && t.Rank() == 2 {
			fmt.Println(all)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [host0 host1 host2]
}
