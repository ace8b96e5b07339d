// Package field is arithmetic in finite fields F_q, on single elements and on
// packets of them.
//
// [Parse] makes a [Field] from a name such as "2^8", "257" or
// "babybear"; [Kinds] lists what it reads, [Register] adds to it, and the package
// curves registers goldilocks and the scalars of curves. The field then adds, multiplies and
// inverts elements and, with Combine, forms linear combinations of packets:
//
//	f, err := field.Parse("2^8")
//	...
//	f.Combine(dst, []field.Element{field.Code(3), field.One}, [][]byte{x, y}) // dst = 3·x + y
//
// # Symbols
//
// An [Element] is held as its symbol code, an integer in [0, q). In a prime
// field that is the residue. In F_{2^w} = F_2[X]/f, f irreducible of degree w,
// Σ c_i·X^i has the code Σ c_i·2^i, the bit string of the coefficients;
// polynomials, f among them, are named by their codes too. Addition is xor.
//
// On disk and on the wire a symbol is its code, little-endian, in the smallest
// of 1, 2, 4, 8 or 32 bytes that holds q-1. [Packing] turns arbitrary bytes into
// symbols and back.
//
// # Kernels
//
// All fields here have q = 2^w <= 2^16, are prime with q < 2^31, or are one of a
// few larger prime fields that have names. Combine is written for long packets, works
// through them in pieces that stay in the processor's cache, and does not allocate:
//
//   - F_{2^w}: on amd64, kernels in assembly for whole maps, of which Combine is one:
//     products by matrices of bits (GFNI, with AVX-512 or AVX) or by tables of nibbles
//     (AVX-512 or AVX2), and on arm64 by NEON. Elsewhere, and with the build tag purego, products
//     by table.
//   - primes below 2^31: 64-bit sums of products, reduced when the next could
//     overflow.
//   - goldilocks: 192-bit sums of products, reduced once.
//   - scalars of curves: the vectors of consensys/gnark-crypto.
//   - all primes, on amd64 processors with AVX-512 (IFMA for goldilocks and scalars):
//     sums of products that stay in registers for several outputs of a map, and are
//     reduced once, in Montgomery's way. For sums and differences, scalars use the
//     vectors of consensys/gnark-crypto.
//
// F_{2^w}, 8 < w <= 16, is [Planar] where there are kernels: with the low bytes of 64 symbols before their high
// ones, kernels need not part them.
//
// The package fieldtest holds the suite that every implementation passes.
package field
