//go:build !unix

package codeddir

// syncDir does nothing where directories cannot be synced.
func syncDir(string) error { return nil }
