//go:build race

package field_test

// raceEnabled reports whether the race detector is on, which makes sync.Pool
// drop what it is given now and then.
const raceEnabled = true
