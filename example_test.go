package volley_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"volley"
	"volley/field"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// Four packets get two coded ones. Any four of these six give back all.
func ExampleEncodeAll() {
	packets := [][]byte{[]byte("abc"), []byte("def"), []byte("ghi"), []byte("jkl")}
	a, err := volley.MDS(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	coded, err := volley.EncodeAll(context.Background(), a, packets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(coded)
	// Output: [[214 142 70] [56 73 230]]
}

// Two of four packets are lost, and come back by the two coded ones.
func ExampleDecodeAll() {
	packets := [][]byte{nil, []byte("def"), nil, []byte("jkl")}
	coded := [][]byte{{214, 142, 70}, {56, 73, 230}}
	a, err := volley.MDS(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	all, err := volley.DecodeAll(context.Background(), a, packets, coded)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", all)
	// Output: [abc def ghi jkl]
}

// Four processors of one process encode a packet of three bytes each.
func ExampleEncode() {
	f, err := field.Parse("2^8")
	if err != nil {
		log.Fatal(err)
	}
	a, err := matrix.Cauchy(f, 4, 4)
	if err != nil {
		log.Fatal(err)
	}
	packets := []string{"abc", "def", "ghi", "jkl"}
	coded := make([][]byte, 4)
	reports := make([]*volley.Report, 4)

	err = local.Run(context.Background(), 4, func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		var err error
		coded[k], reports[k], err = volley.Encode(ctx, t, a, []byte(packets[k]))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	r := volley.Merge(reports)
	fmt.Printf("%s: C1 %d, C2 %d, verified: %v\n", r.Algorithm, r.C1, r.C2, r.Verified)
	fmt.Println("processor 0 has", coded[0])
	// Output:
	// universal: C1 1, C2 1, verified: true
	// processor 0 has [214 142 70]
}

// Three processors encode files that need not fit into memory, one of them
// shorter than the others.
func ExampleEncoder_Run() {
	dir, err := os.MkdirTemp("", "volley")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for k, size := range []int{1_000_000, 999_999, 1_000_000} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("packet.", k)), make([]byte, size), 0o666); err != nil {
			log.Fatal(err)
		}
	}

	f, err := field.Parse("2^8")
	if err != nil {
		log.Fatal(err)
	}
	a, err := matrix.Random(f, 3, 3, 1)
	if err != nil {
		log.Fatal(err)
	}
	encoder, err := volley.NewEncoder(context.Background(), a, volley.WithMemory(1<<20))
	if err != nil {
		log.Fatal(err)
	}
	err = local.Run(context.Background(), 3, func(ctx context.Context, t transport.Transport) error {
		in, err := os.Open(filepath.Join(dir, fmt.Sprint("packet.", t.Rank())))
		if err != nil {
			return err
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(dir, fmt.Sprint("coded.", t.Rank())))
		if err != nil {
			return err
		}
		if _, err := encoder.Run(ctx, t, volley.Packet{Source: in, Size: info.Size(), Coded: out}); err != nil {
			return err
		}
		return out.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "coded.1"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Name(), "has", info.Size(), "bytes")
	// Output: coded.1 has 1000000 bytes
}
