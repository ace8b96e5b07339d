//go:build !(amd64 || arm64) || purego

package field

// findKernels finds none: there are kernels for amd64 and arm64 only.
func findKernels() []*kernels { return nil }

const noKernels = "field: no kernels"

func combineKernel(path, rows, layout int, outputs, inputs *[]byte, columns *uint32, count int, coefs *byte, start, end int, mode uint8) {
	panic(noKernels)
}

func butterflyKernel(path, symbolBytes, inverse int, out0, out1, in0, in1, coef *byte, n int) {
	panic(noKernels)
}

func butterfliesKernel(path, symbolBytes, inverse int, outputs, inputs *[]byte, coefs *byte, n int) {
	panic(noKernels)
}

func planesKernel(path, direction int, dst, src *byte, n int) { panic(noKernels) }
