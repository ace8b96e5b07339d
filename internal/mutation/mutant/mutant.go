// Package mutant is what code rewritten by the mutation tool calls at its mutation
// points: each function does what the original code did, unless the environment makes
// its point the mutant.
package mutant

import (
	"cmp"
	"encoding/binary"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// The environment variables of a test process.
const (
	Variable      = "VOLLEY_MUTANT"       // the point that is the mutant; 0 is none
	ReachVariable = "VOLLEY_MUTANT_REACH" // a file, to which each point reached is appended
)

var active = func() uint32 {
	id, _ := strconv.ParseUint(os.Getenv(Variable), 10, 32)
	return uint32(id)
}()

// Is reports whether point id is the mutant.
func Is(id uint32) bool {
	if reaching && !reached[id].Load() {
		first(id)
	}
	return id == active
}

var (
	reached [points + 1]atomic.Bool
	file    = sync.OnceValue(func() *os.File {
		f, err := os.OpenFile(os.Getenv(ReachVariable), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
		if err != nil {
			return nil // somebody runs the binary by hand
		}
		return f
	})
)

// first appends a point to the file at once: a process may end in any way.
func first(id uint32) {
	if reached[id].Swap(true) {
		return
	}
	if f := file(); f != nil {
		f.Write(binary.LittleEndian.AppendUint32(nil, id))
	}
}

// Integer is what bit operations and % are for.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Number is what arithmetic is for.
type Number interface {
	Integer | ~float32 | ~float64
}

// Next returns n, or n + 1 in the mutant.
func Next[T Number](id uint32, n T) T {
	if Is(id) {
		return n + 1
	}
	return n
}

// Minus returns -a, or a in the mutant.
func Minus[T Number](id uint32, a T) T {
	if Is(id) {
		return a
	}
	return -a
}

// Add returns a + b, or a - b in the mutant.
func Add[T Number](id uint32, a, b T) T {
	if Is(id) {
		return a - b
	}
	return a + b
}

// Sub returns a - b, or a + b in the mutant.
func Sub[T Number](id uint32, a, b T) T {
	if Is(id) {
		return a + b
	}
	return a - b
}

// Mul returns a * b, or a + b in the mutant.
func Mul[T Number](id uint32, a, b T) T {
	if Is(id) {
		return a + b
	}
	return a * b
}

// Quo returns a / b, or a * b in the mutant.
func Quo[T Number](id uint32, a, b T) T {
	if Is(id) {
		return a * b
	}
	return a / b
}

// Rem returns a % b, or a * b in the mutant.
func Rem[T Integer](id uint32, a, b T) T {
	if Is(id) {
		return a * b
	}
	return a % b
}

// And returns a & b, or a | b in the mutant.
func And[T Integer](id uint32, a, b T) T {
	if Is(id) {
		return a | b
	}
	return a & b
}

// Or returns a | b, or a & b in the mutant.
func Or[T Integer](id uint32, a, b T) T {
	if Is(id) {
		return a & b
	}
	return a | b
}

// Xor returns a ^ b, or a | b in the mutant.
func Xor[T Integer](id uint32, a, b T) T {
	if Is(id) {
		return a | b
	}
	return a ^ b
}

// AndNot returns a &^ b, or a & b in the mutant.
func AndNot[T Integer](id uint32, a, b T) T {
	if Is(id) {
		return a & b
	}
	return a &^ b
}

// Shl returns a << b, or a >> b in the mutant.
func Shl[T, N Integer](id uint32, a T, b N) T {
	if Is(id) {
		return a >> b
	}
	return a << b
}

// Shr returns a >> b, or a << b in the mutant.
func Shr[T, N Integer](id uint32, a T, b N) T {
	if Is(id) {
		return a << b
	}
	return a >> b
}

// Less returns a < b, or a <= b in the mutant.
func Less[T cmp.Ordered](id uint32, a, b T) bool {
	if Is(id) {
		return a <= b
	}
	return a < b
}

// LessEqual returns a <= b, or a < b in the mutant.
func LessEqual[T cmp.Ordered](id uint32, a, b T) bool {
	if Is(id) {
		return a < b
	}
	return a <= b
}

// Greater returns a > b, or a >= b in the mutant.
func Greater[T cmp.Ordered](id uint32, a, b T) bool {
	if Is(id) {
		return a >= b
	}
	return a > b
}

// GreaterEqual returns a >= b, or a > b in the mutant.
func GreaterEqual[T cmp.Ordered](id uint32, a, b T) bool {
	if Is(id) {
		return a > b
	}
	return a >= b
}
