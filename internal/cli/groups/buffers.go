package groups

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley/group/buffers"
	"volley/internal/cli/session"
	"volley/internal/exit"
)

// A buffersList is the memory of one rank, all of it in files that both the caller and this process map.
type buffersList struct {
	Buffers []span `json:"buffers"`
	Parity  *span  `json:"parity"` // nil: it is lost, only for sizes
	Room    bool   `json:"room"`   // the file of the parity is to get the room that protect takes
}

// A span is a part of a file that is open here, by its descriptor.
type span struct {
	FD     int   `json:"fd"`
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

// buffersReport is what protect and sizes print.
type buffersReport struct {
	Sizes       []int64 `json:"sizes,omitempty"`
	ParityBytes int64   `json:"parity_bytes"`
}

// bufferVerbs are what may be done with memory.
var bufferVerbs = []string{"protect", "parity-bytes", "sizes", "recover"}

// NewBuffers returns the verb by which a program in another language protects what it has in memory.
func NewBuffers(s *session.Invocation) *cobra.Command {
	o := newOptions(s)
	p := buffers.Options{}
	var list int
	var lost bool
	cmd := &cobra.Command{
		Use:       "buffers [flags] protect|parity-bytes|sizes|recover",
		Short:     "Protect memory that the caller shares, as one rank of a run",
		Hidden:    true,
		ValidArgs: bufferVerbs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Join(cmd.Context()); err != nil {
				return err
			}
			var err error
			if p.Settings, err = o.common(); err != nil {
				return err
			}
			if len(args) != 1 || !slices.Contains(bufferVerbs, args[0]) {
				return exit.Usagef("%s takes one of %s, got %q", cmd.CommandPath(), strings.Join(bufferVerbs, ", "), args)
			}
			m, err := readBuffersList(list)
			if err != nil {
				return exit.Usagef("--list %d: %w", list, err)
			}
			report, err := o.onBuffers(cmd, args[0], m, lost, p)
			if err != nil {
				return err
			}
			return session.WriteJSON(cmd.OutOrStdout(), report)
		},
	}
	f := cmd.Flags()
	f.IntVar(&list, "list", 3, "`FD`, the descriptor of a file that says in JSON what memory there is")
	f.IntVar(&p.Tolerate, "tolerate", 0, "`R`, how many ranks may be lost; only to protect")
	f.StringVar(&p.Digest, "digest", "", "`DIGEST` of memory: sha256, blake3 or xxh3 (default: xxh3, or sha256 with a key); only to protect")
	f.BoolVar(&lost, "lost", false, "what is in the memory here does not matter; only to recover")
	f.BoolVar(&o.json, "json", true, "print the report as JSON, the only way there is")
	f.StringVar(&o.key, "key", "", "`FILE` with the key of the group")
	o.Joining.Add(f, "rank")
	return cmd
}

// onBuffers does with the memory of this rank what the caller asks for.
func (o *groupOptions) onBuffers(cmd *cobra.Command, verb string, m *buffersList, lost bool, p buffers.Options) (any, error) {
	ctx, t := cmd.Context(), o.Party.Transport
	switch needs := verb == "protect" || verb == "recover"; {
	case needs && m.Parity == nil:
		return nil, exit.Usagef("the list of memory has no parity, which %s needs", verb)
	case m.Room && verb != "protect":
		return nil, exit.Usagef("the list of memory asks for room, which %s does not make", verb)
	}
	data, err := mapSpans(m.Buffers, verb == "recover")
	if err != nil {
		return nil, exit.Usagef("buffers: %w", err)
	}
	if m.Room || verb == "parity-bytes" {
		sizes := make([]int64, len(m.Buffers))
		for i, s := range m.Buffers {
			sizes[i] = s.Bytes
		}
		n, err := buffers.ParityBytes(ctx, t, sizes, p)
		if err != nil || !m.Room {
			return buffersReport{ParityBytes: n}, err
		}
		if m.Parity.Bytes, err = n, grow(m.Parity.FD, m.Parity.Offset+n); err != nil {
			return nil, err
		}
	}
	var parity []byte
	if m.Parity != nil {
		shared, err := mapSpans([]span{*m.Parity}, verb != "sizes")
		if err != nil {
			return nil, exit.Usagef("parity: %w", err)
		}
		parity = shared[0]
	}
	switch verb {
	case "protect":
		return buffersReport{ParityBytes: int64(len(parity))}, buffers.Protect(ctx, t, data, parity, p)
	case "sizes":
		sizes, n, err := buffers.Sizes(ctx, t, parity, p)
		return buffersReport{sizes, n}, err
	}
	return buffers.Recover(ctx, t, data, lost, parity, p)
}

// readBuffersList reads the list from its beginning: the descriptor may be where the caller has written it.
func readBuffersList(fd int) (*buffersList, error) {
	fd, err := duplicate(fd)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "list")
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m := new(buffersList)
	d := json.NewDecoder(io.NewSectionReader(f, 0, info.Size()))
	d.DisallowUnknownFields()
	return m, d.Decode(m)
}
