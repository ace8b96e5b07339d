package bench

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// A Machine is where figures are from.
type Machine struct {
	CPU          string   // its model
	Cores        int      // that this process may use
	Go           string   // version
	Instructions []string // sets of vector instructions that kernels make use of
}

// vectors are the sets of instructions that kernels of the fields or the peers have a
// form for.
var vectors = []cpuid.FeatureID{
	cpuid.SSSE3, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512IFMA, cpuid.GFNI, cpuid.ASIMD, cpuid.SVE,
}

// This returns the machine that the program runs on.
func This() Machine {
	m := Machine{CPU: cmp.Or(strings.TrimSpace(cpuid.CPU.BrandName), "CPU "+runtime.GOARCH), Cores: runtime.GOMAXPROCS(0), Go: runtime.Version()}
	for _, v := range vectors {
		if cpuid.CPU.Has(v) {
			m.Instructions = append(m.Instructions, v.String())
		}
	}
	return m
}

func (m Machine) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s, GOMAXPROCS %d, %s %s", m.CPU, m.Cores, m.Go, strings.Join(m.Instructions, " ")))
}
