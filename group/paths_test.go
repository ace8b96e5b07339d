package group

import (
	"io"

	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// Paths of what a node has of a generation.
func manifestPath(g int64) string { return store.MetaPath(store.GenerationDir(g), store.ManifestFile) }
func pendingPath(g int64) string  { return store.MetaPath(store.PendingDir(g), store.ManifestFile) }
func parityPath(g int64) string   { return store.MetaPath(store.GenerationDir(g), store.ParityFile) }

func file(name string, size int64) *tree.Entry {
	return &tree.Entry{Path: tree.Name(name), Type: tree.TypeFile, Size: size}
}

// copied returns copies of entries.
func copied(list []*tree.Entry) (copies []*tree.Entry) {
	for _, e := range list {
		is := *e
		copies = append(copies, &is)
	}
	return copies
}

func unpack(record []byte) ([]byte, error) {
	text, err := store.Unpack(record)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(text)
}
