//go:build !noasm

package field

// libraryVectors is whether klauspost/reedsolomon may have vector instructions.
const libraryVectors = true
