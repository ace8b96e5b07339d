module volley/bench

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/klauspost/cpuid/v2 v2.3.0
	github.com/klauspost/reedsolomon v1.14.2
	github.com/spf13/pflag v1.0.9
	golang.org/x/term v0.47.0
	volley v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace volley => ../
