package buffers

import (
	"bytes"
	"context"
	"testing"

	"volley/group/internal/store"
	"volley/internal/disk"
	"volley/internal/fuzzlimit"
	"volley/transport"
	"volley/transport/local"
)

// FuzzParity reads parity of buffers, with headers that are sealed: what does not fit is refused, and what is held is of
// the group that the manifest says.
func FuzzParity(f *testing.F) {
	buffers, parity := []byte("abc"), make([]byte, 8<<10)
	if err := local.Run(f.Context(), 2, func(ctx context.Context, t transport.Transport) error {
		return Protect(ctx, t, [][]byte{buffers}, parity[t.Rank()*4<<10:][:4<<10], Options{Tolerate: 1})
	}); err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(parity, []byte("\n"))
	f.Add(line, parity[headerBytes:4<<10])
	x := new(store.State)
	if look(new(store.Node), parity[:4<<10], nil, x); len(x.Held) != 1 || len(x.Held[0].Records) != 2 {
		f.Fatal(x)
	}
	f.Fuzz(func(t *testing.T, line, rest []byte) {
		defer fuzzlimit.Hold(t, len(line)+len(rest))()
		header := make([]byte, max(headerBytes, len(line)))
		copy(header, disk.Seal(line))
		n, x := new(store.Node), new(store.State)
		look(n, append(header, rest...), nil, x)
		for _, h := range x.Held {
			if len(x.Bad) > 0 || x.Node < 0 || x.Node >= h.Nodes || h.Nodes != len(n.Held[h.Generation].Manifest.Records) {
				t.Fatal(x)
			}
		}
		if len(x.Held)+len(x.Bad) != 1 {
			t.Fatal(x)
		}
	})
}
