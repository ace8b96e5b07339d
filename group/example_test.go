package group_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"volley/group"
	"volley/group/protection"
)

// Four directories are protected, one is lost, and it comes back.
func Example() {
	at, err := os.MkdirTemp("", "nodes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(at)
	var dirs []string
	for n := range 4 { // in practice each on a disk of its own
		dirs = append(dirs, filepath.Join(at, fmt.Sprint("node", n)))
		err = cmp.Or(err, os.Mkdir(dirs[n], 0o755), os.WriteFile(filepath.Join(dirs[n], "notes.txt"), fmt.Appendln(nil, "what node", n, "knows"), 0o644))
	}
	if err = cmp.Or(err, keep(context.Background(), dirs)); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dirs[2], "notes.txt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("node 2 has: %s", text)
	// Output:
	// generation 1 of 4 nodes
	// node 2 is lost
	// files brought back: 1
	// node 2 has: what node 2 knows
}

// keep protects the directories against the loss of any one of them, and loses one.
func keep(ctx context.Context, dirs []string) error {
	g, err := group.Open(dirs, protection.Settings{})
	if err != nil {
		return err
	}
	protected, err := g.Protect(ctx, group.ProtectOptions{Tolerate: 1})
	if err != nil {
		return err
	}
	fmt.Println("generation", protected.Generation, "of", protected.Nodes, "nodes")
	if err := os.RemoveAll(dirs[2]); err != nil {
		return err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Println("node 2 is", status.Nodes[2].Status)
	recovered, err := g.Recover(ctx, group.RecoverOptions{})
	if err != nil {
		return err
	}
	fmt.Println("files brought back:", recovered.Files)
	return recovered.Incomplete()
}
