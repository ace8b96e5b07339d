package mutant

// The tool builds every test binary a second time with another version of this file,
// where reaching is true and points counts the mutation points.
const (
	reaching = false
	points   = 0
)
