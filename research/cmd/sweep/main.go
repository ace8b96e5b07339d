// Sweep prints what each family of algorithms is worth on networks with one link per node: the
// table of docs/research.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"volley/research"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	most := flag.Int("k", 1024, "leave out larger K")
	flag.Parse()
	s := research.UsualSweep()
	for i, c := range s.Cases {
		s.Cases[i].Processors = slices.DeleteFunc(slices.Clone(c.Processors), func(k int) bool { return k > *most })
	}
	list, err := s.Run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
	fmt.Printf("| family | best in, %% | by 10 %%, %% | loss without it, %%: %s | most at |\n|---|---|---|%s---|\n",
		strings.Join(s.Networks, " | "), strings.Repeat("---|", len(s.Networks)))
	for _, w := range list {
		fmt.Printf("| `%s` | %.1f | %.1f |", w.Name, 100*w.Chosen, 100*w.Pays)
		for _, loss := range w.Loss {
			fmt.Printf(" %.0f |", 100*loss)
		}
		fmt.Printf(" %s |\n", w.Where)
	}
}
