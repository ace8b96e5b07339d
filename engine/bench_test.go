//go:build unix

package engine

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"volley/transport"
)

// BenchmarkExchange has two ranks exchange messages over loopback, with TLS by a secret and without. CPU time is that
// of both ranks for a byte that one of them receives.
func BenchmarkExchange(b *testing.B) {
	for _, secret := range []Secret{{}, NewSecret()} {
		for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("tls=%v/%dKiB", !secret.IsZero(), size>>10), func(b *testing.B) {
				ends, errs := joinAll(b, 0, runsOf(2, free(b), secret)...)
				for _, err := range errs {
					if err != nil {
						b.Fatal(err)
					}
				}
				defer ends[1].Close()
				defer ends[0].Close()
				data := [2][]byte{make([]byte, size), make([]byte, size)}
				done := make(chan error)
				b.SetBytes(2 * int64(size))
				before := cpu()
				b.ResetTimer()
				for r, e := range ends {
					go func() {
						q, in := e.NewQueue(), make([]byte, size)
						for i := range b.N {
							tag := transport.Tag{Round: i}
							q.Post(
								&transport.Transfer{Rank: 1 - r, Tag: tag, Receive: true, Parts: [][]byte{in}},
								&transport.Transfer{Rank: 1 - r, Tag: tag, Parts: [][]byte{data[r]}},
							)
							for range 2 {
								if _, err := q.Wait(b.Context()); err != nil {
									done <- err
									return
								}
							}
						}
						done <- nil
					}()
				}
				for range ends {
					if err := <-done; err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpu()-before)/float64(2*size)/float64(b.N), "cpu-ns/B")
			})
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
