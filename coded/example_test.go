package coded_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"volley"
	"volley/coded"
	"volley/field"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

// Three ranks encode a file each into a directory. One of them is lost; two ranks that are left decode all.
func Example() {
	f, err := field.Parse("2^8")
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "coded")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = local.Run(context.Background(), 3, func(ctx context.Context, t transport.Transport) error {
		state := filepath.Join(dir, fmt.Sprint("state.", t.Rank()))
		if err := os.WriteFile(state, fmt.Appendf(nil, "what rank %d knows", t.Rank()), 0o600); err != nil {
			return err
		}
		_, err := coded.Encode(ctx, t, coded.Encoding{
			Options: coded.Options{Dir: filepath.Join(dir, "coded"), Timeout: volley.DefaultTimeout},
			Field:   f, Matrix: matrices.Spec{Family: "cauchy"},
			Files: []string{state},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	err = local.Run(context.Background(), 2, func(ctx context.Context, t transport.Transport) error {
		d, err := coded.Decode(ctx, t, coded.Decoding{
			Options: coded.Options{Dir: filepath.Join(dir, "back"), Timeout: volley.DefaultTimeout},
			Coded:   filepath.Join(dir, "coded"),
		})
		if err == nil && t.Rank() == 0 {
			fmt.Println(d.Inputs, "inputs from", d.Sources)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "back", "state.1"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output:
	// 3 inputs from [coded.0 coded.1 coded.2]
	// what rank 1 knows
}
