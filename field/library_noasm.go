//go:build noasm

package field

const libraryVectors = false
