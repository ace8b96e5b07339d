package main

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// A Deployment is K sensors with a packet each, and N storage nodes that keep one coded
// packet each. Storage node s is sensor s, as long as there are more sensors than s.
type Deployment struct {
	Sensors int           // K
	Nodes   int           // N >= K
	Code    matrix.Matrix // K×N: column s makes the packet of node s
}

// NewDeployment returns a deployment whose code has independent uniform coefficients.
// The seed alone gives them, so every node knows the code and none of them makes it.
func NewDeployment(f field.Field, sensors, nodes int, seed uint64) (*Deployment, error) {
	code, err := matrix.Random(f, sensors, nodes, seed)
	if err != nil {
		return nil, err
	}
	return &Deployment{sensors, nodes, code}, nil
}

// Store runs all nodes, and returns what each storage node keeps. readings has a packet of
// each sensor, of equal lengths in whole symbols of the field.
func (d *Deployment) Store(ctx context.Context, readings [][]byte, options ...volley.Option) ([][]byte, *volley.Report, error) {
	stored, reports := make([][]byte, d.Nodes), make([]*volley.Report, d.Nodes)
	err := local.Run(ctx, d.Nodes, func(ctx context.Context, t transport.Transport) (err error) {
		var mine []byte
		if t.Rank() < d.Sensors {
			mine = readings[t.Rank()]
		}
		stored[t.Rank()], reports[t.Rank()], err = volley.Encode(ctx, t, d.Code, mine, options...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return stored, volley.Merge(reports), nil
}

// Collect returns the packets of all sensors, from what some nodes have stored. It is an
// error where these do not determine all packets.
func (d *Deployment) Collect(ctx context.Context, stored map[int][]byte) (map[int][]byte, error) {
	readings, _, err := coded.DecodePackets(ctx, local.New(1)[0], coded.MemoryDecoding{Matrix: d.Code, Coded: stored})
	return readings, err
}

// Theory returns the probability that k+extra packets of a code with independent
// uniform coefficients over q elements do not determine k packets: that a random
// k×(k+extra) matrix has a rank below k.
func Theory(q, k, extra int) float64 {
	success := 1.0
	for j := extra + 1; j <= extra+k; j++ {
		success *= 1 - math.Pow(float64(q), -float64(j))
	}
	return 1 - success
}

// BoundSparse returns the probability that some of k sensors is in none of m packets that
// are read of n, where each sensor has sent its packet to d random nodes, some perhaps
// twice. The packets then do not determine all, whatever the field. It is a lower bound of
// the probability of this: a node may have received nothing, for example.
func BoundSparse(k, m, n, d int) float64 {
	missed := math.Pow(1-float64(m)/float64(n), float64(d))
	return 1 - math.Pow(1-missed, float64(k))
}

// dense returns a trial of the code of [NewDeployment]: m of the n packets are read.
func dense(f field.Field, k, m, n int) func(*rand.Rand) *matrix.Dense {
	return func(rng *rand.Rand) *matrix.Dense {
		code, err := matrix.Random(f, k, n, rng.Uint64())
		if err != nil {
			panic(err) // k and n are no sizes of a matrix
		}
		read := rng.Perm(n)
		return matrix.DenseFunc(f, k, m, func(i, j int) field.Element { return code.At(i, read[j]) })
	}
}

// sparse returns a trial of a decentralized erasure code: each of k sensors sends its packet
// to d of n storage nodes, which it draws independently and uniformly. A node adds up what it
// receives, each packet with a uniform coefficient. The packets of m nodes are read.
func sparse(f field.Field, k, m, n, d int) func(*rand.Rand) *matrix.Dense {
	return func(rng *rand.Rand) *matrix.Dense {
		sampler, code := field.NewSampler(f), matrix.NewDense(f, k, m) // the nodes read are the first m
		for i := range k {
			for range d {
				if s := rng.IntN(n); s < m {
					code.Set(i, s, f.Add(code.At(i, s), sampler.Draw(rng.Uint64)))
				}
			}
		}
		return code
	}
}

// Measure returns in how many of so many trials the first k, k+1, … columns of a matrix of k
// rows have a rank below k, at [0], [1], … up to all its columns. The same seed gives the same.
func Measure(k, columns, trials int, seed uint64, trial func(*rand.Rand) *matrix.Dense) []int {
	needed := make([]int, trials) // how many columns have rank k; one more than there are, where they have not
	workers := runtime.GOMAXPROCS(0)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < trials; i += workers {
				_, pivots := trial(rand.New(source(seed, i))).Echelon()
				if needed[i] = columns + 1; len(pivots) == k {
					needed[i] = pivots[k-1] + 1
				}
			}
		})
	}
	running.Wait()
	failures := make([]int, columns-k+1)
	for _, n := range needed {
		for e := range n - k {
			failures[e]++
		}
	}
	return failures
}

// source returns the random words of a trial, which have nothing in common with those of
// another one.
func source(seed uint64, trial int) rand.Source {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(trial))
	return rand.NewChaCha8(key)
}

// Interval returns Wilson's interval for a probability, of which events out of trials have
// been seen: z standard deviations to each side, so 95 % at z = 1.96.
func Interval(events, trials int, z float64) (low, high float64) {
	n := float64(trials)
	p := float64(events) / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}
