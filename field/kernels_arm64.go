//go:build !purego

package field

// findKernels returns those for NEON, which every arm64 processor has.
func findKernels() []*kernels {
	return []*kernels{{
		name: "NEON", granule: tailBytes,
		sum:    sumNEON,
		bytes:  []kernel{bytes1NEON, bytes2NEON, bytes3NEON, bytes4NEON},
		pairs:  []kernel{pairs1NEON, pairs2NEON, pairs3NEON, pairs4NEON},
		planes: []kernel{planes1NEON, planes2NEON, planes3NEON, planes4NEON},
		butterflies: [2]butterflies{
			{butterflyBytesNEON, inverseButterflyBytesNEON, butterfliesBytesNEON, inverseButterfliesBytesNEON},
			{butterflyPlanesNEON, inverseButterflyPlanesNEON, butterfliesPlanesNEON, inverseButterfliesPlanesNEON},
		},
		toPlanes:   toPlanesNEON,
		fromPlanes: fromPlanesNEON,
	}}
}

// combineOne calls the kernel for one output by its name, as that for amd64 does.
func combineOne(_ *kernels, symbolBytes int, sum bool, out, in *[]byte, columns *uint32, count int, coefs *byte, from, to int, add bool) {
	switch {
	case sum:
		sumNEON(out, in, columns, count, nil, from, to, add)
	case symbolBytes == 1:
		bytes1NEON(out, in, columns, count, coefs, from, to, add)
	default:
		pairs1NEON(out, in, columns, count, coefs, from, to, add)
	}
}
