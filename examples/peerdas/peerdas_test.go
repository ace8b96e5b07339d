package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	goethkzg "github.com/crate-crypto/go-eth-kzg"

	"volley"
	"volley/algo"
)

// TestExtend compares the cells that processors end with and those that go-eth-kzg
// computes of the whole blobs.
func TestExtend(t *testing.T) {
	setup, err := goethkzg.NewContext4096Secure()
	if err != nil {
		t.Fatal(err)
	}
	blobs := testBlobs()
	want := make([]Half, len(blobs))
	for b := range blobs {
		var whole goethkzg.Blob
		for k, cell := range blobs[b] {
			copy(whole[k*len(cell):], cell[:])
		}
		all, err := setup.ComputeCells(&whole, 0)
		if err != nil {
			t.Fatal(err)
		}
		for k := range processors {
			if Cell(*all[k]) != blobs[b][k] {
				t.Fatalf("blob %d: cell %d of go-eth-kzg is not that part of the blob", b, k)
			}
			want[b][k] = Cell(*all[processors+k])
		}
	}

	const slow, fast = time.Second, time.Duration(0) // to start a message: to save rounds, or packets
	for _, test := range []struct {
		algorithm string
		ports     int
		beta      time.Duration
		c1, c2    int
	}{
		{"folded-lagrange", 1, slow, 7, 12},
		{"folded-lagrange", 1, fast, 8, 10},
		{"lagrange", 1, slow, 12, 12},
		{algo.Auto, 1, slow, 6, 14},
		{algo.Auto, 1, fast, 8, 10},
		{"folded-lagrange", 2, slow, 6, 6},
		{"folded-lagrange", 4, slow, 4, 4},
	} {
		t.Run(fmt.Sprintf("%s/p=%d/beta=%v", test.algorithm, test.ports, test.beta), func(t *testing.T) {
			got, report, err := extendAll(t.Context(), blobs, volley.WithAlgorithm(test.algorithm),
				volley.WithPaperModel(test.ports, test.beta, volley.DefaultTau))
			if err != nil {
				t.Fatal(err)
			}
			for b := range got {
				for k := range got[b] {
					if got[b][k] != want[b][k] {
						t.Errorf("blob %d: cell %d is not that of go-eth-kzg", b, processors+k)
					}
				}
			}
			if report.C1 != test.c1 || report.C2 != test.c2 {
				t.Errorf("C1 = %d, C2 = %d: want %d and %d", report.C1, report.C2, test.c1, test.c2)
			}
			if want := int64(len(blobs) * cellElements); report.SymbolsPerPacket != want {
				t.Errorf("packets of %d symbols, want %d", report.SymbolsPerPacket, want)
			}
			if !report.Verified {
				t.Error("not verified")
			}
		})
	}
}

// testBlobs returns the blob of zeros, one of largest elements, and random ones.
func testBlobs() []Half {
	rng := rand.New(rand.NewPCG(4096, 64))
	blobs := make([]Half, 5)
	for b := range blobs {
		for k := range blobs[b] {
			v := make([]fr.Element, cellElements)
			for i := range v {
				switch b {
				case 0:
				case 1:
					v[i].SetInt64(-1)
				default:
					var wide []byte
					for range 6 {
						wide = binary.BigEndian.AppendUint64(wide, rng.Uint64())
					}
					v[i].SetBytes(wide)
				}
			}
			blobs[b][k] = cellOf(v)
		}
	}
	return blobs
}

func TestDemonstrate(t *testing.T) {
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"C1 = 8  C2 = 10  folded-lagrange groups 2·2·16·2·2",
		"universal m=8 n=8  6   14  28672 B              the polynomial's values",
		"bruck-allgather    6   63  129024 B             the polynomial's values",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}
