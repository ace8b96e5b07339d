package volley_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/klauspost/reedsolomon"

	"volley"
	"volley/field"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// discard is a packet nobody wants.
type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// BenchmarkEncode encodes K packets in one process, without and with the final
// check. Its vs-klauspost is the time of a run over that of klauspost/reedsolomon
// for the same matrix on the same packets, measured in turns.
func BenchmarkEncode(b *testing.B) {
	for _, k := range []int{4, 16} {
		for _, length := range []int{64 << 10, 1 << 20, 8 << 20} {
			for _, check := range []bool{false, true} {
				b.Run(fmt.Sprintf("K=%d/len=%dKiB/check=%v", k, length>>10, check), func(b *testing.B) {
					benchmarkEncode(b, k, length, volley.WithCheck(check))
				})
			}
		}
	}
}

func benchmarkEncode(b *testing.B, k, length int, opts ...volley.Option) {
	f, err := field.Parse("2^8")
	if err != nil {
		b.Fatal(err)
	}
	a, err := matrix.Cauchy(f, k)
	if err != nil {
		b.Fatal(err)
	}
	columns := make([][]byte, k) // klauspost wants a row per coded packet
	shards := make([][]byte, 2*k)
	rng := rand.NewChaCha8([32]byte{1})
	for i := range columns {
		shards[i], shards[k+i] = make([]byte, length), make([]byte, length)
		rng.Read(shards[i])
		for j := range k {
			columns[i] = append(columns[i], byte(a.At(j, i)[0]))
		}
	}
	other, err := reedsolomon.New(k, k, reedsolomon.WithCustomMatrix(columns))
	if err != nil {
		b.Fatal(err)
	}
	encoder, err := volley.Compile(a, opts...)
	if err != nil {
		b.Fatal(err)
	}
	run := func() {
		err := local.Run(b.Context(), k, func(ctx context.Context, t transport.Transport) error {
			var in io.ReaderAt = bytes.NewReader(shards[t.Rank()])
			_, err := encoder.Run(ctx, t, in, int64(length), discard{})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	run() // both have warm caches and pools
	if err := other.Encode(shards); err != nil {
		b.Fatal(err)
	}
	var theirs time.Duration
	b.SetBytes(int64(k * length))
	b.ReportAllocs()
	for b.Loop() {
		run()
		b.StopTimer()
		start := time.Now()
		if err := other.Encode(shards); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(theirs), "vs-klauspost")
}
