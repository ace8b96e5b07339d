package snapshots_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"volley/group"
	"volley/group/snapshots"
)

// Three roots have a snapshot each, which a program drafts and completes. Protected, it is in force.
func Example() {
	at, err := os.MkdirTemp("", "roots")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(at)
	var roots []string
	for n := range 3 {
		root := filepath.Join(at, fmt.Sprint("root", n))
		draft, err := snapshots.Draft(root, 7)
		if err == nil {
			err = os.WriteFile(filepath.Join(draft, "state"), fmt.Appendln(nil, "of node", n), 0o600)
		}
		if err == nil {
			err = snapshots.Complete(root, 7)
		}
		if err != nil {
			log.Fatal(err)
		}
		roots = append(roots, root)
	}
	ctx := context.Background()
	g, err := group.Open(roots, group.Options{Roots: true, Step: group.Latest})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Protect(ctx, group.ProtectOptions{Tolerate: 1}); err != nil {
		log.Fatal(err)
	}
	report, err := g.Snapshots(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range report.Snapshots {
		fmt.Println(x.Step, x.State)
	}
	// Output: 7 in force
}
