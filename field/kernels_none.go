//go:build !amd64 || purego

package field

// findKernels finds none: there are kernels for amd64 only.
func findKernels() []*kernels { return nil }
