package bench

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/consensys/gnark-crypto/utils/cpu"
	"github.com/klauspost/cpuid/v2"

	"volley/bench/instructions"
	"volley/field"
)

// A Machine is where figures are from.
type Machine struct {
	CPU          string `json:"cpu"`          // its model
	Cores        int    `json:"cores"`        // that this process may use
	Go           string `json:"go"`           // version
	Instructions string `json:"instructions"` // the vector instructions that kernels make use of
	Kernels      string `json:"kernels"`      // of binary fields, as [field.Kernels] has it
	Set          string `json:"set"`          // of the instructions that this process keeps to
}

// vectors are the sets of instructions that kernels of the fields or the peers have a
// form for.
var vectors = []cpuid.FeatureID{
	cpuid.SSSE3, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512IFMA, cpuid.GFNI, cpuid.ASIMD, cpuid.SVE,
}

// CurrentMachine returns the machine that the program runs on.
func CurrentMachine() Machine {
	var supported []string
	for _, v := range vectors {
		if cpuid.CPU.Has(v) {
			supported = append(supported, v.String())
		}
	}
	return Machine{
		CPU: cmp.Or(strings.TrimSpace(cpuid.CPU.BrandName), "CPU "+runtime.GOARCH), Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		Instructions: strings.Join(supported, " "), Kernels: field.Kernels(), Set: instructions.Current(),
	}
}

func (m Machine) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s, GOMAXPROCS %d, %s %s", m.CPU, m.Cores, m.Go, m.Instructions))
}

// checkSet returns an error where kernels were chosen that the set of instructions leaves out.
func (m Machine) checkSet() error {
	vectors := cpu.SupportAVX512 // of gnark-crypto, and of our prime fields
	switch {
	case m.Set == instructions.Available,
		m.Set == instructions.NoGFNI && !strings.Contains(m.Kernels, "GFNI"),
		m.Set == instructions.AVX2 && m.Kernels == "AVX2" && !vectors,
		m.Set == instructions.Portable && m.Kernels == "generic Go" && !vectors:
		return nil
	}
	return fmt.Errorf("bench: cannot keep to the instructions %q: this process has the kernels %q, vectors of 512 bits in prime fields: %v", m.Set, m.Kernels, vectors)
}
