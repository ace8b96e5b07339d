//go:build !linux

package disktest

func (i *info) sys() any { return nil }
