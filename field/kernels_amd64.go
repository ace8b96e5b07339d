//go:build !purego

package field

import "github.com/klauspost/cpuid/v2"

// findKernels returns the kernels that the processor and the system support.
func findKernels() (found []*kernels) {
	for _, k := range []struct {
		kernels
		needs []cpuid.FeatureID
	}{
		{kernels{0, "GFNI and AVX-512", true, 1, 8, 16, true}, []cpuid.FeatureID{cpuid.GFNI, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.BMI2}},
		{kernels{1, "GFNI and AVX", true, tailBytes, 4, 4, true}, []cpuid.FeatureID{cpuid.GFNI, cpuid.AVX2}},
		{kernels{2, "AVX-512", false, 1, 8, 8, true}, []cpuid.FeatureID{cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.BMI2}},
		{kernels{3, "AVX2", false, tailBytes, 4, 4, true}, []cpuid.FeatureID{cpuid.AVX2}},
	} {
		if cpuid.CPU.Supports(k.needs...) {
			found = append(found, &k.kernels)
		}
	}
	return found
}
