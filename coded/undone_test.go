package coded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"volley"
	"volley/field"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

// TestUndone has a run of several ranks fail when each has made its files: nothing is left, whichever rank is the last to
// go.
func TestUndone(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	for k := range 4 {
		writeText(t, filepath.Join(in, fmt.Sprint("packet.", k)), "0123456789")
	}
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		above := filepath.Join(t.TempDir(), "above")
		err := local.Run(t.Context(), 4, func(ctx context.Context, tr transport.Transport) error {
			_, err := Encode(ctx, tr, Encoding{
				Options: Options{
					Dir: filepath.Join(above, "out"), Job: true,
					Encoder: func(field.Field, int64) ([]volley.Option, error) { return []volley.Option{volley.WithMemory(1)}, nil },
				},
				Field: f, Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{in},
			})
			return err
		})
		if !errors.As(err, new(*volley.MemoryError)) {
			t.Fatal(err)
		}
		if _, err := os.Lstat(above); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s is left: %v", above, err)
		}
	}
}
