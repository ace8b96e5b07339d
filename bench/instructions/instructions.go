// Package instructions keeps this process from some of the processor's instructions, so that
// kernels for lesser processors can be measured beside peers that are kept from the same.
//
// Kernels are chosen when their packages are initialized. This package comes before
// volley/field then, because Go initializes in the order of paths what has all that it imports.
// It may import nothing that field does not.
package instructions

import (
	"cmp"
	"os"

	"github.com/klauspost/cpuid/v2"
)

// The sets of instructions.
const (
	Available = "all"     // those that the processor has
	NoGFNI    = "no-gfni" // all but GFNI
	AVX2      = "avx2"    // neither GFNI nor AVX-512
	Portable  = "none"    // what Go compiles: a build with the tags [Tags]
)

// Sets are the sets, the largest first.
var Sets = []string{Available, NoGFNI, AVX2, Portable}

// Tags are the build tags of [Portable]: purego is for volley and gnark-crypto, noasm for
// klauspost/reedsolomon.
const Tags = "purego,noasm"

const variable = "VOLLEY_BENCH_INSTRUCTIONS"

// Environment returns what the environment of a process of that set has besides this one's.
// golang.org/x/sys/cpu, and with it gnark-crypto and the kernels of prime fields, knows only GODEBUG.
func Environment(set string) []string {
	list := []string{variable + "=" + set}
	if set == AVX2 {
		list = append(list, "GODEBUG="+os.Getenv("GODEBUG")+",cpu.avx512dq=off")
	}
	return list
}

// Current returns the set of this process.
func Current() string {
	if generic {
		return Portable
	}
	return cmp.Or(os.Getenv(variable), Available)
}

func init() {
	switch Current() {
	case AVX2:
		cpuid.CPU.Disable(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512IFMA)
		fallthrough
	case NoGFNI:
		cpuid.CPU.Disable(cpuid.GFNI)
	}
}
