//go:build !linux

package transport

func yield() {}
