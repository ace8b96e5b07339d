package verbs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/printable"
)

func newSweep() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Say what each family of algorithms is worth",
		Long: `Say what each family of algorithms is worth on networks with one link per node.

The table is that of docs/research.md. It takes some minutes.`,
		Example: "  volley-lab sweep -k 16",
		Args:    session.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSweep(cmd, most) },
	}
	cmd.Flags().IntVarP(&most, "processors", "k", 1024, "`K`, the most processors")
	return cmd
}

// runSweep prints the table for up to so many processors.
func runSweep(cmd *cobra.Command, most int) error {
	s := usualSweep()
	for i, c := range s.Cases {
		s.Cases[i].Processors = slices.DeleteFunc(slices.Clone(c.Processors), func(k int) bool { return k > most })
	}
	list, err := s.run(cmd.Context())
	if err != nil {
		return err
	}
	var b strings.Builder
	printable.Fprintf(&b, "| family | best in, %% | by 10 %%, %% | loss without it, %%: %s | most at |\n|---|---|---|%s---|\n",
		strings.Join(s.Networks, " | "), strings.Repeat("---|", len(s.Networks)))
	for _, w := range list {
		printable.Fprintf(&b, "| `%s` | %.1f | %.1f |", w.Name, 100*w.Chosen, 100*w.Pays)
		for _, loss := range w.Loss {
			printable.Fprintf(&b, " %.0f |", 100*loss)
		}
		printable.Fprintf(&b, " %s |\n", w.Where)
	}
	return put(cmd, []byte(b.String()), "")
}
