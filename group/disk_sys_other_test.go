//go:build !linux

package group

func (i *info) sys() any { return nil }
