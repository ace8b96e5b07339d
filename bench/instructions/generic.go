//go:build purego || noasm

package instructions

const generic = true
