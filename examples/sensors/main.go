// The program sensors stores the readings of sensors in a network without a centre, by a
// random linear code: decentralized erasure codes, with the encoding by an all-to-all encode.
// It reads them back from a few nodes, and measures how often so few are not enough.
//
// In sensors.go is what one would take from here. The nodes are goroutines of this process,
// and the readings that come back are compared with those of the sensors.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"text/tabwriter"
	"time"

	"volley"
	"volley/field"
	"volley/sim"
)

const (
	sensors = 32          // K
	nodes   = 64          // N, storage nodes; the sensors are among them
	read    = sensors + 2 // packets that a collector reads
	samples = 720
)

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", 1, "of the code, the readings, the nodes that are read and the trials")
	trials := flag.Int("trials", 5000, "of each code")
	flag.Parse()
	if err := demonstrate(context.Background(), os.Stdout, *seed, *trials); err != nil {
		log.Fatal(err)
	}
}

func demonstrate(ctx context.Context, w io.Writer, seed uint64, trials int) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	if err := storeAndCollect(ctx, w, rng, seed); err != nil {
		return err
	}

	fmt.Fprintf(w, "\nHow often do the packets that are read not determine all %d? %d trials of each code.\n", sensors, trials)
	fmt.Fprintln(w, "Every coefficient uniform over the field:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  field\tread\tfailed\tmeasured, 95 % interval\ttheory")
	for _, name := range []string{"2", "2^2", "2^4", "2^8"} {
		f, err := field.Parse(name)
		if err != nil {
			return err
		}
		q := int(f.Order().Int64())
		for e, failed := range Measure(sensors, read, trials, seed, dense(f, sensors, read, nodes)) {
			row(table, name, e, failed, trials, Theory(q, sensors, e))
		}
	}
	table.Flush()

	f, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "Sparse over 2^8, each sensor sends to d random nodes:")
	fmt.Fprintln(table, "  d\tread\tfailed\tmeasured, 95 % interval\tsome sensor at no node that is read")
	for _, d := range []int{4, 8, 12, 16} {
		failed := Measure(sensors, read, trials, seed, sparse(f, sensors, read, nodes, d))[read-sensors]
		row(table, fmt.Sprint(d), read-sensors, failed, trials, BoundSparse(sensors, read, nodes, d))
	}
	return table.Flush()
}

func row(w io.Writer, name string, e, failed, trials int, theory float64) {
	low, high := Interval(failed, trials, 1.96)
	fmt.Fprintf(w, "  %s\tK+%d\t%d\t%.4f  [%.4f, %.4f]\t%.3g\n", name, e, failed, float64(failed)/float64(trials), low, high, theory)
}

// storeAndCollect stores readings at the nodes, over two kinds of links, and reads them back.
func storeAndCollect(ctx context.Context, w io.Writer, rng *rand.Rand, seed uint64) error {
	f, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	d, err := NewDeployment(f, sensors, nodes, seed)
	if err != nil {
		return err
	}
	readings := make([][]byte, sensors)
	for i := range readings {
		readings[i] = day(rng)
	}
	fmt.Fprintf(w, "%d sensors, %d storage nodes, a packet is %d readings: %d bytes\n", sensors, nodes, samples, len(readings[0]))

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  links\trounds\tpackets\tby")
	var stored [][]byte
	for _, link := range []struct {
		name string
		beta time.Duration
		tau  sim.PerByte
	}{
		{"1 ms, 100 Mbit/s", time.Millisecond, 80e-9},
		{"1 ms, 1 Mbit/s", time.Millisecond, 8e-6},
	} {
		var report *volley.Report
		if stored, report, err = d.Store(ctx, readings, volley.WithPaperModel(1, link.beta, link.tau)); err != nil {
			return err
		}
		fmt.Fprintf(table, "  %s\t%d\t%.4g\t%s %s\n", link.name, report.C1, report.C2Packets, report.Algorithm, report.Parameters)
	}
	fmt.Fprintf(table, "  any\t\t%d\tevery packet to every node\n", sensors)
	fmt.Fprintf(table, "  any\t\t%d\teach sensor sends to d = 5·(N/K)·ln K nodes\n", int(math.Ceil(5*nodes/sensors*math.Log(sensors))))
	table.Flush()

	const times = 20
	for range times {
		found := make(map[int][]byte)
		for _, s := range rng.Perm(nodes)[:read] {
			found[s] = stored[s]
		}
		back, err := d.Collect(ctx, found)
		if err != nil {
			return err
		}
		for i := range readings {
			if !bytes.Equal(back[i], readings[i]) {
				return fmt.Errorf("the readings of sensor %d came back wrong", i)
			}
		}
	}
	fmt.Fprintf(w, "%d times %d random nodes are lost: the other %d give all readings back\n", times, nodes-read, read)
	return nil
}

// day returns the temperatures of a day at a sensor, in hundredths of a degree.
func day(rng *rand.Rand) []byte {
	base, swing := 10+5*rng.NormFloat64(), 4+rng.Float64()
	var packet []byte
	for i := range samples {
		celsius := base - swing*math.Cos(2*math.Pi*float64(i)/samples) + 0.1*rng.NormFloat64()
		packet = binary.LittleEndian.AppendUint16(packet, uint16(int16(100*celsius)))
	}
	return packet
}
