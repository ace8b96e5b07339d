package verify_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"volley"
	"volley/matrix"
	"volley/verify"
)

// A plan is read off on unit vectors: it computes the matrix that was asked for, and no other.
func ExampleCheck() {
	a, err := volley.MDS(4, 4)
	if err != nil {
		log.Fatal(err)
	}
	encoder, err := volley.NewEncoder(context.Background(), a)
	if err != nil {
		log.Fatal(err)
	}
	p, err := encoder.Plan(context.Background(), nil, 1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verify.Check(context.Background(), p, a))
	other, err := matrix.Random(a.Field(), 4, 4, 1)
	if err != nil {
		log.Fatal(err)
	}
	wrong := new(verify.MismatchError)
	if errors.As(verify.Check(context.Background(), p, other), &wrong) {
		fmt.Println("entries of another matrix that it gets wrong:", wrong.Count)
	}
	// Output:
	// <nil>
	// entries of another matrix that it gets wrong: 16
}
