package volley_test

import (
	"context"
	"fmt"
	"log"

	"volley"
	"volley/field"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// Four processors of one process encode a packet of three bytes each.
func ExampleEncode() {
	f, err := field.Parse("2^8")
	if err != nil {
		log.Fatal(err)
	}
	a, err := matrix.Cauchy(f, 4)
	if err != nil {
		log.Fatal(err)
	}
	packets := []string{"abc", "def", "ghi", "jkl"}
	coded := make([][]byte, 4)
	reports := make([]*volley.Report, 4)

	err = local.Run(context.Background(), 4, func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		var err error
		coded[k], reports[k], err = volley.Encode(ctx, t, a, []byte(packets[k]))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	r := volley.Merge(reports)
	fmt.Printf("%s: %d rounds, %d packets, verified: %v\n", r.Algorithm, r.C1, r.C2, r.Verified)
	fmt.Println("processor 0 has", coded[0])
	// Output:
	// universal: 2 rounds, 2 packets, verified: true
	// processor 0 has [214 142 70]
}
