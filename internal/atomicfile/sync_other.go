//go:build !unix

package atomicfile

// SyncDir does nothing where directories cannot be synced.
func SyncDir(string) error { return nil }
