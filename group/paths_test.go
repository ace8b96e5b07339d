package group

import "volley/group/internal/store"

// Paths of what a node has of a generation.
func manifestPath(g int64) string { return store.MetaPath(store.GenerationDir(g), store.ManifestFile) }
func pendingPath(g int64) string  { return store.MetaPath(store.PendingDir(g), store.ManifestFile) }
func parityPath(g int64) string   { return store.MetaPath(store.GenerationDir(g), store.ParityFile) }
