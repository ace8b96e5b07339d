package site_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"volley/group/site"
)

// Of two directories one is not there: nothing can be protected yet, and nothing is made.
func ExampleLook() {
	at, err := os.MkdirTemp("", "nodes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(at)
	for _, name := range []string{".", "missing"} {
		node := site.Look(context.Background(), site.Directory{Dir: filepath.Join(at, name)})
		fmt.Println(name, len(node.Faults))
		for _, fault := range node.Faults {
			fmt.Println(fault.Kind)
		}
	}
	// Output:
	// . 0
	// missing 1
	// no directory
}
