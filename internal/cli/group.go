package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley"
	"volley/executor"
	"volley/field"
	"volley/group"
	"volley/internal/selection"
)

// groupOptions is the flags of the verbs for groups of nodes.
type groupOptions struct {
	choice // of which only ports and the cost model are used
	joining
	json bool
}

func (o *groupOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	end := flagGroup(cmd, "Run")
	o.joining.add(f, "node")
	f.IntVarP(&o.Ports, "ports", "p", volley.DefaultPorts, "messages a node sends, and receives, at a time")
	end()
	o.addModel(cmd)
	cmd.Flags().MarkHidden("gamma")
}

// begin joins the others and returns the library's options and the directories of the
// nodes here.
func (o *groupOptions) begin(cmd *cobra.Command, args []string) (group.Options, []string, error) {
	if err := o.join(cmd.Context()); err != nil {
		return group.Options{}, nil, err
	}
	memory, err := o.memoryBytes()
	if err != nil {
		return group.Options{}, nil, err
	}
	if o.timeout < 0 || o.Ports < 1 {
		return group.Options{}, nil, usagef("--timeout %v, --ports %d: want 0 or more, 1 or more", o.timeout, o.Ports)
	}
	if len(args) == 0 {
		return group.Options{}, nil, usagef("no directories: name that of every node, in order; under mpirun each process its own, such as '/local/ckpt.{rank}'")
	}
	bytes, err := field.Parse(selection.UsualField)
	if err != nil {
		return group.Options{}, nil, err
	}
	m, err := o.Model(bytes, 1)
	if err != nil {
		return group.Options{}, nil, err
	}
	dirs := slices.Clone(args)
	if o.party.job() && len(args) > 1 && !strings.Contains(args[0], rankWord) { // those of all
		first, end := executor.Hosted(len(args), o.party.Rank(), o.party.Size())
		dirs = dirs[first:end]
	}
	for i := range dirs {
		dirs[i] = strings.ReplaceAll(dirs[i], rankWord, fmt.Sprint(o.party.Rank()))
	}
	return group.Options{Memory: memory, Timeout: o.timeout, Ports: o.Ports, Beta: m.Beta, Tau: m.Tau}, dirs, nil
}

// print prints a report at rank 0, as JSON if asked.
func (o *groupOptions) print(w io.Writer, report any, text func(io.Writer) error) error {
	switch {
	case o.party.Rank() > 0:
		return nil
	case o.json:
		return writeJSON(w, report)
	}
	return text(w)
}

const protectHelp = `Protect the files of a group of nodes: a node is a directory, and after it any R of
them may be lost with everything in them, and volley recover brings them back.

Each DIR gets a directory .volley with parity and a manifest; nothing else is
written. Everything below a DIR is protected: files, symbolic links, directories,
with their modes and times. While it runs the files should be left alone; one that
changes ends it with an error, and the earlier protection stays in force.

Run again after files have changed, it codes again only what has. Until then what has not
changed is as safe as before, as long as nodes that changed and nodes that are lost
are no more than R together.

A node that is lost and a file that is damaged have to be recovered before: to protect
what is left would make the loss for good.

Layouts:
  full     each node stores as much parity as the node with the most data has data;
           R is K/2 at most. Few rounds: an all-to-all encode
  striped  each node stores R/(K-R) as much; K-1 rounds of one chunk of 1/(K-R)
Without --layout it is the one that takes less time by the cost model, or that of the
run before. --dry-run says what each would take.

Under mpirun, with --comm mpi, each process names its own node, in which {rank} stands for
its number, or all name all of them.`

func newProtect() *cobra.Command {
	o := &groupOptions{}
	p := group.ProtectOptions{}
	cmd := &cobra.Command{
		Use:   "protect --tolerate R [flags] DIR...",
		Short: "Protect the files of a group of nodes by parity at each of them",
		Long:  protectHelp,
		Example: `  volley protect --tolerate 2 node.0 node.1 node.2 node.3 node.4
  mpirun -n 8 volley protect --comm mpi --tolerate 2 /local/ckpt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			var dirs []string
			if p.Options, dirs, err = o.begin(cmd, args); err != nil {
				return err
			}
			if !cmd.Flags().Changed("tolerate") {
				return usagef("say with --tolerate R how many nodes may be lost")
			}
			r, err := group.Protect(cmd.Context(), o.party.Transport, dirs, p)
			if err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), r, func(w io.Writer) error { return printProtect(w, r, p.DryRun) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&p.Tolerate, "tolerate", 0, "R, the nodes that may be lost at a time")
	f.StringVar(&p.Layout, "layout", "", "full or striped (default: that of before, or the faster one)")
	f.StringVar(&p.Matrix, "matrix", "", "cauchy, or fti for parity as FTI's level 3 writes it, with layout full (default: that of before, or cauchy)")
	f.BoolVar(&p.Force, "force", false, "protect what is there, although nodes are lost or files damaged")
	f.BoolVar(&p.DryRun, "dry-run", false, "say what it would take, and write nothing")
	o.add(cmd)
	return cmd
}

func printProtect(w io.Writer, r *group.ProtectReport, dry bool) error {
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	fmt.Fprintf(w, "%s, any %d of which may be lost: layout %s, matrix %s over %s\n", count(r.Nodes, "node"), r.Tolerate, r.Layout, r.Matrix, r.Field)
	for _, c := range r.Costs {
		if !c.Possible {
			fmt.Fprintf(w, "%-10s not possible: %s\n", c.Layout, c.Why)
			continue
		}
		fmt.Fprintf(w, "%-10s %s of parity at each node, %s, %s in the largest messages (%s), %.3g s by the model\n",
			c.Layout, size(c.StoredBytes), count(c.Rounds, "round"), size(c.SentBytes), c.Plan, c.Seconds)
	}
	if dry {
		_, err := fmt.Fprintln(w, "nothing written: a dry run")
		return err
	}
	_, err := fmt.Fprintf(w, `data       %s in %s
parity     %s at each node
coded      %d of %s of each chunk; the others are as before
traffic    %s sent by the busiest node in %s
time       %.3f s
protected, generation %d
`, size(r.DataBytes), count(r.Files, "file"), size(r.ParityBytes), r.Coded, count(r.Blocks, "block"),
		size(r.Traffic.MostSent), count(r.Traffic.C1, "round"), r.Seconds, r.Generation)
	return err
}

const verifyHelp = `Verify that the files of a group of nodes are as they were protected: every file, the
parity and the manifests, by their SHA-256.

It prints each node and what is the matter with its files: missing, damaged (as long as
before, with something else in it), changed (another length, and written to
since), or new, which is no damage and not protected yet. The exit code is 3 unless all is whole.

--quick compares names, lengths and times, and then random combinations of all data
and parity, of which only a few bytes move: it finds any damage but with
probability 2^-32. Only if there is some are digests taken, which say where.`

func newVerify() *cobra.Command {
	o := &groupOptions{}
	v := group.VerifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify [flags] DIR...",
		Short: "Say which nodes and files of a protected group are whole",
		Long:  verifyHelp,
		Example: `  volley verify node.0 node.1 node.2 node.3 node.4
  volley verify --quick node.0 node.1 node.2 node.3 node.4`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			var dirs []string
			if v.Options, dirs, err = o.begin(cmd, args); err != nil {
				return err
			}
			r, err := group.Verify(cmd.Context(), o.party.Transport, dirs, v)
			if err != nil {
				return err
			}
			if err := o.print(cmd.OutOrStdout(), r, func(w io.Writer) error { return printVerify(w, r) }); err != nil {
				return err
			}
			return brokenOf(r)
		},
	}
	cmd.Flags().BoolVar(&v.Quick, "quick", false, "compare random combinations of all data instead of digests")
	o.add(cmd)
	return cmd
}

func printVerify(w io.Writer, r *group.VerifyReport) error {
	printNodes(w, r.Nodes)
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	if !r.Protected {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s, layout %s, any %d may be lost, generation %d\n", count(len(r.Nodes), "node"), r.Layout, r.Tolerate, r.Generation)
	return err
}

func printNodes(w io.Writer, nodes []group.NodeReport) {
	for _, n := range nodes {
		fmt.Fprintf(w, "node %d  %s  %s\n", n.Node, n.Status, n.Dir)
		for _, f := range n.Findings {
			fmt.Fprintf(w, "        %s: %q\n", f.What, string(f.Path))
		}
	}
}

// A brokenError says that a group is not whole.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// brokenOf returns a *brokenError unless the group is whole.
func brokenOf(r *group.VerifyReport) error {
	if !r.Protected {
		return &brokenError{"the group is not protected"}
	}
	if r.Whole {
		return nil
	}
	var names []string
	for _, n := range r.Nodes {
		if n.Status != group.Whole {
			names = append(names, fmt.Sprintf("%s (%s)", n.Dir, n.Status))
		}
	}
	if names == nil {
		return &brokenError{"data and parity do not fit together"}
	}
	return &brokenError{"not whole: " + list(names)}
}

const recoverHelp = `Recover what is lost or damaged in a group of nodes: directories that are gone or empty,
files that are missing or not what they were, parity and manifests.

Name all nodes in the order in which they were protected, those that are lost, too. It
writes nothing at a node that is whole, and gives no file its name before its SHA-256
is right. Of a file that was damaged and written to since it was protected, the content
is kept in .volley/replaced. A file that has another length and time was changed: it
stays as it is, and counts as lost where other nodes need it; --revert brings it back, too.

If more nodes are lost than --tolerate said, or more than the parity replaces, it writes
nothing, names the nodes, and the exit code is 2. With layout full the parity often replaces
more than was promised: --beyond tries.`

func newRecover() *cobra.Command {
	o := &groupOptions{}
	x := group.RecoverOptions{}
	cmd := &cobra.Command{
		Use:   "recover [flags] DIR...",
		Short: "Recover lost nodes and damaged files of a protected group",
		Long:  recoverHelp,
		Example: `  volley recover node.0 node.1 node.2 node.3 node.4
  mpirun -n 8 volley recover --comm mpi /local/ckpt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			var dirs []string
			if x.Options, dirs, err = o.begin(cmd, args); err != nil {
				return err
			}
			r, err := group.Recover(cmd.Context(), o.party.Transport, dirs, x)
			if err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), r, func(w io.Writer) error { return printRecover(w, r, x.DryRun) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&x.Revert, "revert", false, "bring back changed files, too, as they were protected")
	f.BoolVar(&x.Beyond, "beyond", false, "recover more nodes than the group tolerates to lose, where the parity allows that")
	f.BoolVar(&x.DryRun, "dry-run", false, "say what would be done, and write nothing")
	o.add(cmd)
	return cmd
}

func printRecover(w io.Writer, r *group.RecoverReport, dry bool) error {
	printNodes(w, r.Nodes)
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	for _, path := range r.Kept {
		fmt.Fprintf(w, "changed, left as it is: %s\n", path)
	}
	for _, path := range r.Replaced {
		fmt.Fprintf(w, "what was there is in %s\n", path)
	}
	if dry {
		_, err := fmt.Fprintln(w, "nothing written: a dry run")
		return err
	}
	_, err := fmt.Fprintf(w, "recovered %s; %s sent by the busiest node in %s, %.3f s\n",
		count(r.Files, "file"), humanize.IBytes(uint64(r.Traffic.MostSent)), count(r.Traffic.C1, "round"), r.Seconds)
	return err
}
