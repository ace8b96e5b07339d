package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"volley"
	"volley/trace"
)

// A recorder gets what is done when, and writes it as Perfetto reads it.
func Example() {
	r := trace.New()
	packets := [][]byte{[]byte("abc"), []byte("def")}
	a, err := volley.MDS(2, 2)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := volley.EncodeAll(context.Background(), a, packets, volley.WithTrace(r)); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := r.WriteTo(&file); err != nil {
		log.Fatal(err)
	}
	events, err := trace.ReadEvents(&file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(events) == len(r.Events()), len(events) > 0)
	// Output: true true
}
