//go:build !unix

package engine

func forbidCore() error { return nil }
