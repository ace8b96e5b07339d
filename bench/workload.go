package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
	"volley/transport/local"
	"volley/verify"
)

// inProcess says that messages are those of one process, where nothing is gained by pieces.
func inProcess(algorithm string) []volley.Option {
	n, _ := sim.ParseNetwork("process") // which is a preset
	list := []volley.Option{volley.WithNetwork(n), volley.WithGamma(sim.ProcessGamma), volley.WithAlgorithm(algorithm)}
	if algorithm == algo.Auto {
		list = append(list, volley.WithWholePackets())
	}
	return list
}

// encode returns the workload of the matrix on the packets, without a peer.
func encode(a matrix.Matrix, inputs [][]byte) *workload {
	w := &workload{inputs: inputs, outputs: sameShape(inputs)}
	packets := make([]volley.Packet, len(inputs))
	for i := range inputs {
		packets[i] = volley.Packet{Data: inputs[i], Result: &w.outputs[i]}
	}
	w.start = func(ctx context.Context, algorithm string) (run, error) {
		encoders := map[bool]*volley.Encoder{}
		for _, check := range []bool{false, true} {
			e, err := volley.NewEncoder(ctx, a, append(inProcess(algorithm), volley.WithCheck(check))...)
			if err != nil {
				return nil, err
			}
			if _, err := e.Plan(ctx, nil, int64(len(inputs[0])/a.Field().SymbolBytes())); err != nil {
				return nil, err
			}
			encoders[check] = e
		}
		return func(ctx context.Context, check bool) (*volley.Report, error) {
			return encoders[check].Run(ctx, local.New(1)[0], packets...)
		}, nil
	}
	w.wrong = func() int { return wrongBySum(a, w.inputs, w.outputs) }
	return w
}

// wrongBySum counts the outputs that are not the inputs times a, by a direct sum
// of fingerprints: it shares no plan with the run. A wrong packet passes with a probability
// of about 2^-32.
func wrongBySum(a matrix.Matrix, inputs, outputs [][]byte) int {
	f, n := a.Field(), len(inputs)
	var seed verify.Seed
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	block := verify.BlockSymbols(int64(len(inputs[0])/f.SymbolBytes()), 1)
	prints := make([][]byte, 2*n)
	spread(2*n, func(i int) {
		packet := outputs[i%n]
		if i < n {
			packet = inputs[i]
		}
		if f.FirstInvalid(packet) >= 0 {
			return // no packet over the field at all
		}
		p := verify.NewFingerprints(f, seed, block, 1)
		p.Add(packet)
		prints[i] = p.Bytes()[0]
	})
	wrong := make([]bool, n)
	spread(n, func(j int) {
		column := make([]field.Element, n)
		for i := range column {
			column[i] = a.At(i, j)
		}
		want := make([]byte, len(prints[0]))
		f.Combine(want, column, prints[:n])
		wrong[j] = !bytes.Equal(want, prints[n+j])
	})
	return count(wrong)
}

// wrongByBytes counts the packets of got that differ from those of want.
func wrongByBytes(got, want [][]byte) int {
	wrong := make([]bool, len(got))
	spread(len(got), func(i int) { wrong[i] = !bytes.Equal(got[i], want[i]) })
	return count(wrong)
}

func count(list []bool) int {
	n := 0
	for _, x := range list {
		if x {
			n++
		}
	}
	return n
}

// readAll reads all packets once, on all cores.
func readAll(lists ...[][]byte) {
	packets := slices.Concat(lists...)
	spread(len(packets), func(i int) { bytes.Count(packets[i], []byte{0}) })
}

// checkFloor returns what does the multiply-adds of a check of K packets and K results with the kernels of the field, on
// all cores, of blocks that stay in a cache.
func checkFloor(name string, k int, size int64) (func(), error) {
	f, err := field.Parse(name)
	if err != nil {
		return nil, err
	}
	const block = 4 << 10
	columns := min(2*k, 32) // of a map, which reads them once
	rows := make([][]field.Element, verify.RelationBytes(f)/f.SymbolBytes())
	sampler := field.NewSampler(f)
	for i := range rows {
		rows[i] = make([]field.Element, columns)
		for j := range rows[i] {
			rows[i][j] = sampler.Draw(rand.Uint64)
		}
	}
	combination, workers := f.Map(rows), runtime.GOMAXPROCS(0)
	inputs, outputs := make([][][]byte, workers), make([][][]byte, workers)
	for w := range workers {
		inputs[w], outputs[w] = randomPackets(f, columns, block), randomPackets(f, len(rows), block)
	}
	times := max(1, int(int64(2*k)*size/int64(columns*block)))
	return func() {
		spread(workers, func(w int) {
			for range (times*(w+1))/workers - times*w/workers {
				combination.Apply(outputs[w], inputs[w], true)
			}
		})
	}, nil
}

// randomPackets returns k packets of size bytes with symbols of the field.
func randomPackets(f field.Field, k int, size int64) [][]byte {
	source := rand.NewChaCha8([32]byte{1})
	packets := make([][]byte, k)
	for i := range packets {
		packets[i] = make([]byte, size)
		field.FillRandom(f, packets[i], source.Uint64)
	}
	return packets
}

// sameShape returns packets of the same lengths.
func sameShape(list [][]byte) [][]byte {
	packets := make([][]byte, len(list))
	for i := range packets {
		packets[i] = make([]byte, len(list[i]))
	}
	return packets
}

// copyAll copies src, packets of one length, over dst, on all cores.
func copyAll(dst, src [][]byte) {
	const piece = 256 << 10
	size := len(src[0])
	pieces := (size + piece - 1) / piece
	spread(pieces*len(src), func(i int) {
		begin := i % pieces * piece
		copy(dst[i/pieces][begin:min(begin+piece, size)], src[i/pieces][begin:])
	})
}

// spread calls body for all items in [0, n), on as many goroutines as there are cores,
// each of which has neighbouring items.
func spread(n int, body func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	var helpers sync.WaitGroup
	for worker := range workers {
		helpers.Go(func() {
			for i := worker * n / workers; i < (worker+1)*n/workers; i++ {
				body(i)
			}
		})
	}
	helpers.Wait()
}

// build parses the field and builds the square matrix of the spec.
func build(name string, spec matrices.Spec, k int) (matrix.Matrix, error) {
	f, err := field.Parse(name)
	if err != nil {
		return nil, err
	}
	a, err := spec.Build(f, k, k)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return a, nil
}
