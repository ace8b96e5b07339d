// Package rapidseed, for tests with rapid, has a failure print the seed that repeats it, and write no file beside the test.
package rapidseed

import (
	"flag"

	_ "pgregory.net/rapid" // defines the flag
)

func init() {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
}
