//go:build !purego

package field

import "github.com/klauspost/cpuid/v2"

// findKernels returns the kernels that the processor and the system support.
func findKernels() []*kernels {
	var found []*kernels
	if cpuid.CPU.Supports(cpuid.GFNI, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.BMI2) {
		found = append(found, &kernels{
			name: "GFNI and AVX-512", affine: true, granule: 1,
			sum:    sumGFNI512,
			bytes:  []kernel{bytes1GFNI512, bytes2GFNI512, bytes3GFNI512, bytes4GFNI512, bytes5GFNI512, bytes6GFNI512, bytes7GFNI512, bytes8GFNI512},
			pairs:  []kernel{pairs1GFNI512, pairs2GFNI512, pairs3GFNI512, pairs4GFNI512, pairs5GFNI512, pairs6GFNI512, pairs7GFNI512, pairs8GFNI512},
			planes: []kernel{planes1GFNI512, planes2GFNI512, planes3GFNI512, planes4GFNI512, planes5GFNI512, planes6GFNI512, planes7GFNI512, planes8GFNI512},
			butterflies: [2]butterflies{
				{butterflyBytesGFNI512, inverseButterflyBytesGFNI512, butterfliesBytesGFNI512, inverseButterfliesBytesGFNI512},
				{butterflyPlanesGFNI512, inverseButterflyPlanesGFNI512, butterfliesPlanesGFNI512, inverseButterfliesPlanesGFNI512},
			},
			toPlanes:   toPlanesGFNI512,
			fromPlanes: fromPlanesGFNI512,
		})
	}
	if cpuid.CPU.Supports(cpuid.GFNI, cpuid.AVX2) {
		found = append(found, &kernels{
			name: "GFNI and AVX", affine: true, granule: tailBytes,
			sum:    sumGFNI256,
			bytes:  []kernel{bytes1GFNI256, bytes2GFNI256, bytes3GFNI256, bytes4GFNI256},
			pairs:  []kernel{pairs1GFNI256, pairs2GFNI256, pairs3GFNI256, pairs4GFNI256},
			planes: []kernel{planes1GFNI256, planes2GFNI256, planes3GFNI256, planes4GFNI256},
			butterflies: [2]butterflies{
				{butterflyBytesGFNI256, inverseButterflyBytesGFNI256, butterfliesBytesGFNI256, inverseButterfliesBytesGFNI256},
				{butterflyPlanesGFNI256, inverseButterflyPlanesGFNI256, butterfliesPlanesGFNI256, inverseButterfliesPlanesGFNI256},
			},
			toPlanes:   toPlanesGFNI256,
			fromPlanes: fromPlanesGFNI256,
		})
	}
	if cpuid.CPU.Supports(cpuid.AVX2) {
		found = append(found, &kernels{
			name: "AVX2", granule: tailBytes,
			sum:    sumAVX2,
			bytes:  []kernel{bytes1AVX2, bytes2AVX2, bytes3AVX2, bytes4AVX2},
			pairs:  []kernel{pairs1AVX2, pairs2AVX2, pairs3AVX2, pairs4AVX2},
			planes: []kernel{planes1AVX2, planes2AVX2, planes3AVX2, planes4AVX2},
			butterflies: [2]butterflies{
				{butterflyBytesAVX2, inverseButterflyBytesAVX2, butterfliesBytesAVX2, inverseButterfliesBytesAVX2},
				{butterflyPlanesAVX2, inverseButterflyPlanesAVX2, nil, nil},
			},
			toPlanes:   toPlanesAVX2,
			fromPlanes: fromPlanesAVX2,
		})
	}
	return found
}

// combineOne calls the kernel for one output by its name: through a variable, the
// compiler would not see that the arguments may stay on the stack.
func combineOne(path *kernels, symbolBytes int, sum bool, out, in *[]byte, columns *uint32, count int, coefs *byte, from, to int, add bool) {
	switch {
	case path.affine && path.granule == 1: // the one with masks
		switch {
		case sum:
			sumGFNI512(out, in, columns, count, nil, from, to, add)
		case symbolBytes == 1:
			bytes1GFNI512(out, in, columns, count, coefs, from, to, add)
		default:
			pairs1GFNI512(out, in, columns, count, coefs, from, to, add)
		}
	case path.affine:
		switch {
		case sum:
			sumGFNI256(out, in, columns, count, nil, from, to, add)
		case symbolBytes == 1:
			bytes1GFNI256(out, in, columns, count, coefs, from, to, add)
		default:
			pairs1GFNI256(out, in, columns, count, coefs, from, to, add)
		}
	default:
		switch {
		case sum:
			sumAVX2(out, in, columns, count, nil, from, to, add)
		case symbolBytes == 1:
			bytes1AVX2(out, in, columns, count, coefs, from, to, add)
		default:
			pairs1AVX2(out, in, columns, count, coefs, from, to, add)
		}
	}
}
