package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/algo"
	"volley/field"
	"volley/internal/atomicfile"
	"volley/internal/selection"
	"volley/matrix"
	"volley/plan"
	"volley/report"
	"volley/sim"
)

type costOptions struct {
	choice
	processors string
	portList   string
	overList   string
	mean, load bool
	noiseOptions
	format string
	plot   string
	output string
}

const costHelp = `Print what each algorithm costs, with the lower bounds: C1 in rounds, C2 in
packets, and the time C1·β + C2·W·τ + C3·W·γ in the model, where W is the number of
symbols of a packet and C3 that of multiply-adds. The costs are counted from the
schedules.

Without --matrix it prints the universal algorithms and those they are compared with.
With it, those that take this matrix as well, with --cut also by pieces of packets: of a family of plans the cheapest by β and τ, and under
front C1/C2 of every plan, of any algorithm, that no other one beats in both. What
does not exist at some K stays empty.

bound is the lower bound for every matrix; min_cut that for C2 in the least number
of rounds, known where K is a power of p+1.

--jitter and --stragglers add the median and the 95 % quantile of the times of
simulated runs, in which a processor goes on to the next round when its own messages
of the last one have arrived. Each message takes β·X + d·W·τ·Y for d packets. X and Y
are lognormal of mean 1, and --jitter 0.2 is their standard deviation; of
exponential:0.2 they are 1 and a delay of that mean. With --stragglers 0.05x4 each
processor is with probability 0.05 one whose messages take 4 times as long.

--load prints for each algorithm what a processor sends and receives, at most and in
the mean, and all together, in packets; how many it holds when it forgets none, and
when it forgets each after its last use; and its multiply-adds per symbol.

--format svg and png draw: with --plot c1, c2, ratio (of C2 to its lower bound) or
time against K; for one K, with --plot size the time of every plan against the size of
a packet, and where which plan is the cheapest, and with --plot memory or compute the
least time against the packets held, or the multiply-adds, that are allowed.`

// costFormats are those of tables, and those of charts.
var (
	chartFormats = []string{"svg", "png"}
	costFormats  = slices.Concat(report.Formats, chartFormats)
)

func newCost() *cobra.Command {
	o := &costOptions{}
	cmd := &cobra.Command{
		Use:   "cost [flags] [-k K]",
		Short: "Compare the costs of the algorithms, for many K",
		Long:  costHelp,
		Example: `  volley cost -k 2..64
  volley cost -k 8,16,32,64 -p 2 --size 64KiB --format csv
  volley cost --field 257 --matrix lagrange -k 16,24,32,48,64,96,128
  volley cost -k 2..2048 -p 1,2,4,8 --algorithm universal,prepare-and-shoot --mean
  volley cost -k 16,64 --size 64KiB --jitter 0.2 --stragglers 0.05x4 --repeat 20
  volley cost -k 2..256 --plot ratio --format svg > ratio.svg
  volley cost --matrix cauchy -k 64 --plot size --format svg > crossings.svg`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCost(cmd, o) },
	}
	o.addMatrix(cmd)
	f := cmd.Flags()
	f.Lookup("matrix").DefValue = "any matrix"
	f.StringVarP(&o.processors, "processors", "k", "2..64", "numbers of processors: a list such as 4,8,16..20")
	f.StringVarP(&o.portList, "ports", "p", "1", "messages a processor sends, and receives, at a time: a number, or a list as for -k")
	f.StringVar(&o.Algorithm, "algorithm", "", "only these: names that volley algorithms lists, with commas")
	o.addModel(cmd)
	o.addLimits(cmd)
	replaceRoundsOver(f, &o.overList)
	o.AddSize(f)
	f.Lookup("size").Usage += "; for --plot size a range (default " + usualSizes + ")"
	f.BoolVar(&o.mean, "mean", false, "print only the mean of C2 / lower bound over all K")
	f.BoolVar(&o.load, "load", false, "print what processors send, receive, hold and compute")
	o.addNoise(cmd)
	f.StringVar(&o.format, "format", "text", strings.Join(costFormats, ", "))
	f.StringVar(&o.plot, "plot", "c2", "what svg and png draw: "+strings.Join(plots, ", "))
	f.StringVarP(&o.output, "output", "o", "", "file to write instead of stdout")
	return cmd
}

// replaceRoundsOver makes --rounds-over a list.
func replaceRoundsOver(f *pflag.FlagSet, list *string) {
	one := f.Lookup("rounds-over")
	one.Value, one.DefValue = &stringValue{list}, ""
	one.Usage = "at most so many rounds more than the fewest: a number, or a list as for -k (default: as beta and tau decide)"
}

// A setting is what rows differ in besides K.
type setting struct {
	ports int
	over  int // most rounds over the fewest; -1: any number
}

// costRow is the costs for one K in one setting.
type costRow struct {
	setting
	k, used int               // ports that are used
	square  bool              // whether every processor is source and sink
	c1, c2  int               // lower bounds
	costs   map[string]costed // by algorithm, the cheapest plan of each; of those that exist
	plans   []costed          // all
	front   string            // of a given matrix: "C1/C2 C1/C2", undominated
}

// costed is a plan of an algorithm and its costs.
type costed struct {
	algorithm string
	cost      sim.Cost
	memory    int        // packets held, if none is forgotten
	times     sim.Sample // of a simulation; nil without
	load      sim.Load   // with --load
	work      *sim.Work  // with --load; nil where it is too large to find out
}

// A costJob is a comparison whose arguments are all right.
type costJob struct {
	*costOptions
	field      field.Field
	spec       matrix.Spec
	given      bool // the matrix
	ks         []int
	settings   []setting
	algorithms []algo.Algorithm
	model      sim.Model
	noise      *sim.Noise // nil: none
	bytes      int64      // of a packet
	sizes      sizeRange  // of --plot size
	unsuited   error      // why the last algorithm that does not exist at some K does not
}

func runCost(cmd *cobra.Command, o *costOptions) error {
	job, err := o.prepare(cmd)
	if err != nil {
		return err
	}
	rows, err := job.rows(cmd.Context())
	if err != nil {
		return err
	}
	if o.output == "" {
		return job.write(cmd.OutOrStdout(), rows)
	}
	var b bytes.Buffer
	if err := job.write(&b, rows); err != nil {
		return err
	}
	err = atomicfile.Write(o.output, b.Bytes())
	var at *fs.PathError
	if errors.As(err, &at) && at.Op == "open" {
		return usagef("-o: %w", err)
	}
	return err
}

// prepare checks all arguments.
func (o *costOptions) prepare(cmd *cobra.Command) (*costJob, error) {
	job := &costJob{costOptions: o, given: cmd.Flags().Changed("matrix")}
	if err := o.checkForm(cmd.Flags().Changed); err != nil {
		return nil, err
	}
	var err error
	if job.field, err = field.Parse(o.Field); err != nil {
		return nil, usage(err)
	}
	if job.ks, err = selection.ParseProcessors(o.processors); err != nil {
		return nil, usagef("-k %q: %w", o.processors, err)
	}
	if err := job.prepareSettings(); err != nil {
		return nil, err
	}
	if job.noise, err = o.noise(cmd.Flags().Changed); err != nil {
		return nil, err
	}
	if err := job.prepareModel(cmd.Flags().Changed("size")); err != nil {
		return nil, err
	}
	if job.spec, err = o.Spec(); err != nil {
		return nil, err
	}
	if err := job.prepareAlgorithms(); err != nil {
		return nil, err
	}
	if !job.given { // no algorithm for every matrix looks at it
		if job.spec, err = matrix.ParseSpec("random:0"); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// checkForm checks what to print, and that flags go together.
func (o *costOptions) checkForm(changed func(string) bool) error {
	if err := checkFormat(o.format, costFormats); err != nil {
		return err
	}
	chart := slices.Contains(chartFormats, o.format)
	noisy := changed("jitter") || changed("stragglers")
	switch {
	case !slices.Contains(plots, o.plot):
		return usagef("--plot %q: want one of %s", o.plot, strings.Join(plots, ", "))
	case changed("plot") && !chart:
		return usagef("--plot %s: say how to draw it, with --format svg or --format png", o.plot)
	case chart && (o.mean || o.load):
		return usagef("--format %s: --mean and --load print tables: leave them out, or take text, csv or json", o.format)
	case o.mean && o.load:
		return usagef("--mean and --load print different tables: leave one out")
	case noisy && (o.mean || o.load || chart && o.plot != "time"):
		return usagef("--jitter and --stragglers change times only: leave them out, or --mean, --load and plots but that of time")
	case !noisy && (changed("seed") || changed("repeat")):
		return usagef("--seed and --repeat are for simulated runs: say what differs in them with --jitter or --stragglers")
	}
	return checkOutputFile("-o", o.output, ", or leave -o out to print")
}

// prepareSettings reads the lists of ports and rounds.
func (j *costJob) prepareSettings() error {
	ports, err := selection.ParseNumbers(j.portList, 0, selection.LargestK)
	if err != nil {
		return usagef("-p %q: %w", j.portList, err)
	}
	overs := []int{algo.NoLimits.RoundsOver}
	if j.overList != "" {
		if overs, err = selection.ParseNumbers(j.overList, 0, selection.LargestK); err != nil {
			return usagef("--rounds-over %q: %w", j.overList, err)
		}
	}
	for _, p := range ports {
		if _, err := algo.Ports(1, p); err != nil {
			return usage(err)
		}
		for _, over := range overs {
			j.settings = append(j.settings, setting{p, over})
		}
	}
	if len(j.settings)*len(j.ks) > selection.MostNumbers {
		return usagef("%d values of -k, for %d of -p and --rounds-over: want %d rows at most", len(j.ks), len(j.settings), selection.MostNumbers)
	}
	return nil
}

func (j *costJob) prepareModel(sizeChanged bool) (err error) {
	if (j.sweeps() || j.trades()) && len(j.ks)*len(j.settings) != 1 {
		return usagef("--plot %s: it is for one K, one -p and one --rounds-over: say which", j.plot)
	}
	if j.sweeps() {
		j.sizes, err = parseSizes(j.Size, sizeChanged)
		j.bytes = j.sizes.from
	} else if j.bytes, err = selection.ParseSize(j.Size); err != nil {
		err = usagef("--size %q: %w", j.Size, err)
	}
	if err != nil {
		return err
	}
	j.model, err = j.choice.Model(j.field, field.PackingOf(j.field).Symbols(j.bytes))
	return err
}

// sweeps reports whether times are wanted for many packet sizes.
func (o *costOptions) sweeps() bool {
	return slices.Contains(chartFormats, o.format) && o.plot == "size"
}

// trades reports whether the times of all plans are wanted against what they take.
func (o *costOptions) trades() bool {
	return slices.Contains(chartFormats, o.format) && (o.plot == "memory" || o.plot == "compute")
}

// prepareAlgorithms reads the list of algorithms.
func (j *costJob) prepareAlgorithms() error {
	j.algorithms = algo.Algorithms()
	if j.Algorithm != "" {
		j.algorithms = nil
		for name := range strings.SplitSeq(j.Algorithm, ",") {
			if name = strings.TrimSpace(name); name == algo.Auto {
				return usagef("--algorithm auto: the table shows what auto chooses from: leave it out, or name one")
			}
			one, err := algo.Lookup(name)
			if err != nil {
				return usage(err)
			}
			if !j.given && one.Structured {
				return usagef("--algorithm %s, which is for %s: without --matrix there are universal algorithms only: say which matrix", name, one.Problem)
			}
			if !slices.ContainsFunc(j.algorithms, func(a algo.Algorithm) bool { return a.Name == name }) {
				j.algorithms = append(j.algorithms, one)
			}
		}
	}
	if !j.given {
		j.algorithms = slices.DeleteFunc(j.algorithms, func(a algo.Algorithm) bool { return a.Structured })
	}
	return nil
}

// rows counts all there is to print, one setting after the other. It leaves only
// algorithms that exist at some K.
func (j *costJob) rows(ctx context.Context) ([]costRow, error) {
	rows := make([]costRow, len(j.settings)*len(j.ks))
	var missing error // why the matrix does not exist, at the last K where it does not
	exists := map[string]bool{}
	for i, k := range j.ks {
		a, err := j.BuildFor(j.spec, j.field, k)
		built := err == nil
		if built && !j.given {
			a = withoutZeros{a}
		}
		if !built {
			missing = err
		}
		for s, setting := range j.settings {
			row := &rows[s*len(j.ks)+i]
			*row = costRow{setting: setting, k: k, costs: map[string]costed{}}
			if err := j.bound(row); err != nil {
				return nil, usage(err)
			}
			if !built {
				continue
			}
			if err := j.count(ctx, row, a); err != nil {
				return nil, err
			}
			for name := range row.costs {
				exists[name] = true
			}
		}
	}
	if len(exists) == 0 && missing != nil {
		return nil, usage(missing)
	}
	switch {
	case len(exists) > 0:
	case len(j.algorithms) == 1 && j.unsuited != nil:
		return nil, usagef("--algorithm %s, which is for %s: %s", j.algorithms[0].Name, j.algorithms[0].Problem, message(j.unsuited))
	case j.unsuited != nil:
		return nil, usagef("no algorithm for this: %s", message(j.unsuited))
	default:
		return nil, usagef("no plan keeps the limits at any K: allow more with --rounds-over, --max-memory or --max-compute")
	}
	j.algorithms = slices.DeleteFunc(j.algorithms, func(a algo.Algorithm) bool { return !exists[a.Name] })
	return rows, nil
}

// withoutZeros is a matrix that stands for any: its zeros are ones.
type withoutZeros struct{ matrix.Matrix }

func (m withoutZeros) At(i, j int) field.Element {
	if x := m.Matrix.At(i, j); !x.IsZero() {
		return x
	}
	return field.One
}

// problem returns the problem of computing a in the setting.
func (j *costJob) problem(s setting, a matrix.Matrix) (*algo.Problem, error) {
	p := &algo.Problem{Matrix: a, Separate: j.Separate, Ports: s.ports, Order: j.PlanOrder(), Limits: j.Limits, Cut: j.Cut || j.Algorithm != ""}
	p.Limits.RoundsOver = s.over
	if j.trades() && p.Limits == (algo.Limits{RoundsOver: s.over}) {
		p.Limits.Memory, p.Limits.Compute = math.MaxInt32, math.MaxInt32 // so that frugal plans come too
	}
	return p, p.Prepare()
}

// bound fills in the bounds of a row, which depend on the shape of the matrix only.
func (j *costJob) bound(r *costRow) error {
	spec, err := matrix.ParseSpec("random:0")
	if err != nil {
		return err
	}
	a, err := j.BuildFor(spec, j.field, r.k)
	if err != nil {
		return err
	}
	p, err := j.problem(r.setting, a)
	if err != nil {
		return err
	}
	r.used, r.square = p.Ports, p.Square()
	r.c1, r.c2 = p.Bounds()
	return nil
}

// count counts the costs for the matrix a. Of a family of plans it is that of least
// model time.
func (j *costJob) count(ctx context.Context, r *costRow, a matrix.Matrix) error {
	p, err := j.problem(r.setting, a)
	if err != nil {
		return usage(err)
	}
	for _, x := range j.algorithms {
		if ctx.Err() != nil {
			return errInterrupted
		}
		plans, err := x.Plans(p)
		if errors.Is(err, algo.ErrStructure) {
			j.unsuited = err
			continue
		}
		if err != nil {
			return usage(err)
		}
		var best plan.Plan
		var bestCost sim.Cost
		for _, q := range plans {
			candidate := p.Evaluate(q, j.model)
			if candidate.Broken != "" {
				continue
			}
			cost := candidate.Cost
			r.plans = append(r.plans, costed{algorithm: x.Name, cost: cost, memory: candidate.Memory})
			if best == nil || j.model.Time(cost) < j.model.Time(bestCost) {
				best, bestCost = q, cost
			}
		}
		if best == nil {
			continue
		}
		c := costed{algorithm: x.Name, cost: bestCost}
		if err := j.look(ctx, r, &c, best); err != nil {
			return err
		}
		r.costs[x.Name] = c
	}
	r.front = front(r.plans)
	if !j.sweeps() && !j.trades() {
		r.plans = nil
	}
	return nil
}

// look finds out more of a plan, where that is wanted.
func (j *costJob) look(ctx context.Context, r *costRow, c *costed, q plan.Plan) error {
	var err error
	where := func(err error) error {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return fmt.Errorf("%s at K = %d: %w", c.algorithm, r.k, err)
	}
	if j.noise != nil {
		c.times, err = sim.Simulate(ctx, q, j.model, *j.noise, j.seed, j.repeat)
		if errors.Is(err, sim.ErrTooLarge) {
			return usagef("%s at K = %d: %s: leave it out, with the others in --algorithm", c.algorithm, r.k, message(err))
		}
		if err != nil {
			return where(err)
		}
	}
	if j.load {
		if c.load, err = sim.LoadOf(ctx, q); err != nil {
			return where(err)
		}
		w, err := sim.WorkOf(ctx, q)
		if err != nil && !errors.Is(err, sim.ErrTooLarge) {
			return where(err)
		}
		if err == nil {
			c.work = &w
		}
	}
	return nil
}

// front lists C1/C2 of the plans that no other one beats, the fewest rounds first.
func front(plans []costed) string {
	plans = slices.Clone(plans)
	slices.SortFunc(plans, func(a, b costed) int {
		return cmp.Or(cmp.Compare(a.cost.C1, b.cost.C1), cmp.Compare(a.cost.PacketC2(), b.cost.PacketC2()))
	})
	var list []string
	least := math.Inf(1)
	for _, c := range plans {
		if c.cost.PacketC2() < least {
			least = c.cost.PacketC2()
			list = append(list, c.String())
		}
	}
	return strings.Join(list, " ")
}

// String returns "C1/C2".
func (c costed) String() string {
	return fmt.Sprintf("%d/%s", c.cost.C1, strconv.FormatFloat(c.cost.PacketC2(), 'g', 6, 64))
}

// write writes what was asked for.
func (j *costJob) write(w io.Writer, rows []costRow) error {
	switch {
	case slices.Contains(chartFormats, j.format):
		return j.draw(w, rows)
	case j.load:
		return j.writeLoad(w, rows)
	case j.mean:
		return j.writeMeans(w, rows)
	}
	if err := report.Write(w, j.format, j.columns(), rows); err != nil {
		return err
	}
	if j.format != "text" || len(j.ks) < 2 || j.given {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return j.writeMeans(w, rows)
}

// checkOutputFile refuses a name, given with a flag, that is no place for a file; empty is
// none. Instead says what else may be done.
func checkOutputFile(flag, name, instead string) error {
	if name == "" {
		return nil
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		return usagef("%s %s: it is there and no regular file: choose another name%s", flag, name, instead)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("%s: %w", flag, err)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil {
		return usagef("%s %s: its directory: %w", flag, name, err)
	} else if !info.IsDir() {
		return usagef("%s %s: %s is no directory", flag, name, filepath.Dir(name))
	}
	return nil
}
