//go:build mpi

// The program mpi encodes a vector of each process of an MPI job over the goldilocks
// field, and checks one symbol of the result by hand:
//
//	go build -tags mpi -o example ./examples/mpi
//	mpirun -n 4 ./example
package main

import (
	"context"
	"fmt"
	"log"

	"volley"
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/transport/mpi"
)

func main() {
	log.SetFlags(0)
	rank, err := mpi.Init()
	if err != nil {
		log.Fatal(err)
	}
	if err := encode(context.Background(), rank); err != nil {
		log.Printf("rank %d: %v", rank.Rank(), err)
		mpi.AbortJob(1)
	}
	rank.Close()
	if err := mpi.Finalize(); err != nil {
		log.Fatal(err)
	}
}

// encode is what each process does.
func encode(ctx context.Context, rank *mpi.Endpoint) error {
	f, err := field.Parse("goldilocks")
	if err != nil {
		return err
	}
	k := rank.Size()
	a, err := matrix.Random(f, k, k, 1)
	if err != nil {
		return err
	}
	const symbols = 1000
	packet := make([]byte, symbols*f.SymbolBytes())
	for i := range symbols {
		field.PutSymbol(f, packet[i*f.SymbolBytes():], field.Code(uint64(rank.Rank()+i)))
	}
	encoder, err := volley.NewEncoder(ctx, a, volley.WithTimeout(volley.DefaultTimeout))
	if err != nil {
		return err
	}
	// Made ready once for many runs: the processes agree here, and runs start with data.
	var coded []byte
	bound, err := encoder.Bind(ctx, rank, []volley.Packet{{Data: packet, Result: &coded}})
	if err != nil {
		return err
	}
	defer bound.Close()
	for range 3 {
		if err := bound.Run(); err != nil {
			return err
		}
	}
	// Symbol 0 of processor i is i, so that of the coded packet is Σ_i A[i][rank]·i.
	want := field.Element{}
	for i := range k {
		want = f.Add(want, f.Mul(a.At(i, rank.Rank()), field.Code(uint64(i))))
	}
	if got := field.Symbol(f, coded); got != want {
		return fmt.Errorf("symbol 0 is %v, want %v", got, want)
	}
	if rank.Rank() == 0 {
		report := bound.Report()
		fmt.Printf("%d processes, %s: %d rounds, %d packets\n", k, report.Algorithm, report.C1, report.C2)
	}
	return nil
}
