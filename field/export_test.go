package field

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Portable makes a field of odd characteristic without kernels of this package that
// need vector instructions.
func Portable(name string) Field {
	s, err := parse(name)
	if err != nil {
		panic(err)
	}
	switch f := s.build().(type) {
	case *prime:
		f.simd = nil
		return f
	case *gold:
		f.simd = nil
		return f
	case *scalars[bls12381.Element, *bls12381.Element]:
		f.simd = nil
		return f
	case *scalars[bn254.Element, *bn254.Element]:
		f.simd = nil
		return f
	}
	panic(name + " is of no odd characteristic")
}

// ForKernels runs a test with the kernels of every set of instructions that the processor has; then with Go alone.
func ForKernels(run func(name string)) {
	defer func(before *kernels) { currentKernels = before }(currentKernels)
	for _, currentKernels = range append(kernelPaths[:len(kernelPaths):len(kernelPaths)], nil) {
		run(Kernels())
	}
}

// IsButterfly reports whether a map has a kernel of its own.
func IsButterfly(m Map) bool {
	_, is := m.(*butterflyMap)
	return is
}
