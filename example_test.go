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

// Four packets get two coded ones. Any four of these six give back all.
func ExampleEncodeAll() {
	packets := [][]byte{[]byte("abc"), []byte("def"), []byte("ghi"), []byte("jkl")}
	a, err := volley.MDS(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	coded, err := volley.EncodeAll(context.Background(), a, packets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(coded)
	// Output: [[214 142 70] [56 73 230]]
}

// Two of four packets are lost, and come back by the two coded ones.
func ExampleDecodeAll() {
	packets := [][]byte{nil, []byte("def"), nil, []byte("jkl")}
	coded := [][]byte{{214, 142, 70}, {56, 73, 230}}
	a, err := volley.MDS(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	all, err := volley.DecodeAll(context.Background(), a, packets, coded)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", all)
	// Output: [abc def ghi jkl]
}

// Four processors of one process encode a packet of three bytes each.
func ExampleEncode() {
	f, err := field.Parse("2^8")
	if err != nil {
		log.Fatal(err)
	}
	a, err := matrix.Cauchy(f, 4, 4)
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
	fmt.Printf("%s: C1 %d, C2 %d, verified: %v\n", r.Algorithm, r.C1, r.C2, r.Verified)
	fmt.Println("processor 0 has", coded[0])
	// Output:
	// universal: C1 1, C2 1, verified: true
	// processor 0 has [214 142 70]
}
