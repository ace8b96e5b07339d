module volley/examples

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/crate-crypto/go-eth-kzg v1.5.0
	volley v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace volley => ..
