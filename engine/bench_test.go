//go:build unix

package engine

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"volley/transport"
	"volley/transport/transporttest"
)

// An exchanger sends one message of a round, and receives one of the same length.
type exchanger func(round int, out, in []byte) error

// BenchmarkExchange has two ranks exchange messages over loopback, with TLS by a secret, and bare connections do the same.
// CPU time is that of both ends for a byte that one of them receives.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		for name, connect := range map[string]func(*testing.B, Secret) [2]exchanger{"ranks": connectRanks, "bare": connectBare} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, name), func(b *testing.B) {
				ends, done := connect(b, NewSecret()), make(chan error, 2)
				run := func(rounds int) {
					for _, exchange := range ends {
						go func() {
							out, in := make([]byte, size), make([]byte, size)
							var err error
							for i := 0; i < rounds && err == nil; i++ {
								err = exchange(i, out, in)
							}
							done <- err
						}()
					}
					for range ends {
						if err := <-done; err != nil {
							b.Fatal(err)
						}
					}
				}
				run(3) // connects
				b.SetBytes(2 * int64(size))
				before := cpu()
				b.ResetTimer()
				run(b.N)
				b.ReportMetric(float64(cpu()-before)/float64(2*size)/float64(b.N), "cpu-ns/B")
			})
		}
	}
}

// connectRanks joins two ranks.
func connectRanks(b *testing.B, secret Secret) (ends [2]exchanger) {
	ranks, errs := joinAll(b, 0, runsOf(2, transporttest.Free(b), secret)...)
	for r, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
		e, q := ranks[r], ranks[r].NewQueue()
		b.Cleanup(func() { e.Close() })
		ends[r] = func(round int, out, in []byte) error {
			tag := transport.Tag{Round: round % 8}
			q.Post(
				&transport.Transfer{Rank: 1 - r, Tag: tag, Receive: true, Parts: [][]byte{in}},
				&transport.Transfer{Rank: 1 - r, Tag: tag, Parts: [][]byte{out}},
			)
			for range 2 {
				if _, err := q.Wait(b.Context()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return ends
}

// connectBare opens one connection.
func connectBare(b *testing.B, secret Secret) (ends [2]exchanger) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer at.Close()
	var conns [2]net.Conn
	if conns[0], err = net.Dial("tcp", at.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if conns[1], err = at.Accept(); err != nil {
		b.Fatal(err)
	}
	c, err := secret.tls()
	if err != nil {
		b.Fatal(err)
	}
	conns[0], conns[1] = tls.Client(conns[0], c), tls.Server(conns[1], c)
	for r, c := range conns {
		b.Cleanup(func() { c.Close() })
		ends[r] = func(_ int, out, in []byte) error {
			sent := make(chan error, 1)
			go func() {
				_, err := c.Write(out)
				sent <- err
			}()
			if _, err := io.ReadFull(c, in); err != nil {
				return err
			}
			return <-sent
		}
	}
	return ends
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
