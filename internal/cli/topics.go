package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/bench"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/matrix"
)

// newTopics returns what "volley help TOPIC" explains: commands that do nothing.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "files", Short: "What encode and decode read and write", Long: filesHelp},
		{Use: "groups", Short: "How directories of nodes are protected", Long: groupsHelp},
		{Use: "tuning", Short: "Flags that decide which schedule is chosen", Long: tuningHelp + tuningFlags()},
		{Use: "costs", Short: "The tables and charts of volley cost", Long: costsHelp},
		{Use: "matrices", Short: "The matrices there are", Long: matricesHelp + families()},
		{Use: "measuring", Short: "How tune and bench measure", Long: fmt.Sprintf(measuringHelp, benchCases())},
	}
}

const filesHelp = `What encode and decode read and write.

Inputs. A directory stands for the regular files in it, in the order of their
names; names with a leading dot are left out. With -k a single name with {rank}
in it, such as 'ckpt.{rank}', stands for K files. Every packet is as long as
the longest input: shorter ones are padded with zeros for coding.

Coded files. For 16 processors encode writes coded.00 to coded.15,
manifest.json, which says what they are, and manifest.copy.json, a copy of
that. A run that fails or is killed leaves the directory as it was, or with the
whole new result. Two runs cannot write it at once. Only who can read every
input can read these files. With --csv the one input is a text file of symbols
in decimal, a row for each processor, and the output is coded.csv.

Decoded files. decode finds inputs that have survived by length and SHA-256,
whatever their names are now. It writes all inputs under the last part of the
names they had. Where two of these are equal, or one cannot be a file of a
directory, they become input.<k>. Each is compared with its SHA-256 before any
of them gets its name. Only who can read every file they come from can read
them. What encode --csv has coded becomes a text file again, without comments.

MPI. With --comm mpi each process that mpirun starts is one processor, and
names its own files: by {rank}, which may be in the name of a directory with
one file in it, or by files that only it sees. Files that all processes see may
be named by all as well. decode takes the manifest of any process, and inputs
that are not there as lost.`

const groupsHelp = `How directories of nodes are protected.

What is protected. Everything below a DIR: files, symbolic links and
directories, with their owners, modes, attributes and times. Parity and records
are kept in .volley there, and nothing else is written. A file that changes
while protect runs ends it with an error, and the earlier protection stays in
force. Files that have not changed since the last run stay safe as long as
nodes that changed and nodes that are lost are no more than R together.

Accidents. protect refuses a node at which nothing is left, and one that lost
more than half of its files, or of their bytes, while fewer than half of the
nodes did (--max-deleted, --allow-deleted).

Layouts
  striped  each node stores R/(K-R) of its data; K-1 rounds of one chunk
  full     each node stores as much parity as the node with the most data has
           data; R is at most K/2; fewer rounds for little data
Without --layout it is striped, unless full is much faster by the cost model. A
group keeps its layout until most of its blocks are coded anew. protect
--dry-run shows what each layout would take.

What verify finds
  missing    the file is not there
  damaged    the content differs, and the time is the one that was protected
  stale      the node was left behind; the file is of an earlier generation
  changed    content and time differ: somebody has written to the file
  new        the file was not there; it is not protected yet
  metadata   only mode, owner, attributes or time differ
New files and metadata are no damage.

What recover does. It writes nothing at a node that is whole. A file whose
content and time differ was changed on purpose: it stays as it is, and counts
as lost where other nodes need it (--revert brings back the protected one).
Where somebody may have written to a file that is replaced, its content is kept
in .volley/replaced. If single files cannot be brought back, the others are,
and the exit code is 3. With layout full the parity often replaces more nodes
than R: --beyond tries.

MPI. With --comm mpi each process that mpirun starts names its own node, in
which {rank} stands for its number, or all processes name all nodes.`

const tuningHelp = `Flags that decide which schedule is chosen.

The defaults are right for most runs. Volley takes the schedule of least C1·β +
C2·W·τ + C3·W·γ within the limits, where C1 counts rounds, C2 packets, C3
multiply-adds and W is the length of a packet. "volley tune" measures the
network and γ, and later runs use them: β is L + o, and τ is G of one message.
encode, decode, plan and cost take all of these flags; protect, verify and
recover take --beta and --tau.

`

// tuningFlags lists the flags of tuning.
func tuningFlags() string {
	var s selection.Selection
	var parts []string
	for i, add := range []func(*pflag.FlagSet){s.AddLimits, s.AddModel} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		add(set)
		parts = append(parts, tuningGroups[i]+" flags:\n"+flagUsages(set))
	}
	return strings.Join(parts, "\n\n")
}

const costsHelp = `The tables and charts of volley cost.

Columns. C1 is in rounds, C2 in packets, the time is that of the model, C1·β +
C2·W·τ + C3·W·γ, where W is the length of a packet and C3 the number of
multiply-adds. All are counted from the schedules. What does not exist at some
K stays empty. bound is the lower bound for every matrix; min_cut that for C2
in the least number of rounds, known where K is a power of p+1. Both are for
whole packets. cut is the lower bound of C2 where packets are cut into pieces,
and holds for each matrix without zeros off the diagonal by itself: (K+R-2)/N
packets over p, for K sources and R sinks on N = max(K, R) processors, and
(K+R-1)/N on N = K+R where sinks are separate; at least 1/p. It stays empty
where the matrix has zeros, or too many entries to look at.

Algorithms. Without --matrix there are the universal algorithms and those they
are compared with. With --matrix there are also those for this matrix, and with
--cut those that cut packets. Of a family of plans the table has the cheapest
by β and τ, and under front C1/C2 of every plan, of any algorithm, that no
other one beats in both.

Simulated runs. --jitter and --stragglers add the median and the 95 % quantile
of the times of simulated runs, in which a processor goes on to the next round
when its own messages of the last one have arrived. Each message takes β·X +
d·W·τ·Y for d packets. X and Y are lognormal of mean 1, and --jitter 0.2 is
their standard deviation; of exponential:0.2 they are 1 and a delay of that
mean. With --stragglers 0.05x4 each processor is with probability 0.05 one
whose messages take 4 times as long.

Load. --load prints what a processor sends and receives, at most and in the
mean, and all together, in packets; how many packets it holds when it forgets
none, and when it forgets each after its last use; and its multiply-adds per
symbol.

Charts. --format svg and png draw. --plot c1, c2, ratio (of C2 to its lower
bound) and time are against K. For one K, --plot size draws the time of every
plan against the size of a packet and marks where which plan is the cheapest;
--plot memory and compute draw the least time against the packets, or
multiply-adds, allowed.`

const matricesHelp = `The matrices there are, by the names that --matrix takes.

MDS: any K of the K+R initial and coded packets determine the others.

`

// families explains the matrices there are.
func families() string {
	var text strings.Builder
	for _, f := range matrix.Families() {
		printable.Fprintf(&text, "%s\n  %s\n  %s\n", f, printable.Lines(wrapped(f.Formula, 2)), printable.Lines(wrapped(f.Doc, 2)))
	}
	return strings.TrimSpace(text.String())
}

const measuringHelp = `How tune and bench measure. Let the machine be idle.

tune. In each round every processor sends n messages, 1 B to 1 MiB together, to
the n processors that follow, for n = 1, 3, √K and K-1. Rounds come in random
order, two of a kind after a barrier. The slowest processor counts, the least of
three such times, and the median of these. L + o·n + G·bytes is fitted to the
times by weighted medians of slopes, which single times that are off do not move
(Theil and Sen). Where G is more than 1.2 times as large for n = K-1 as for
n = 1 it is kept for each n. off is what the fit says over what was measured,
the residual the root mean square of that. In the paper's model β is L + o and τ
is G of one message.

γ is timed on combinations of 8 packets, at all processors at once; later runs
use that of packets in the cache. The figures hold for as many processors on as
many CPUs: give -k as in the runs to come. The file is volley/tune.json in the
user's configuration directory, or the one that the environment variable
VOLLEY_TUNE names; VOLLEY_TUNE=off reads none, and writes none unless -o says
where. It holds a result for each transport, set of hosts and number of
processors. A run takes one of its transport, on one host or on several as the
run is: one on the same hosts, else one of about as many processors.

bench. Each iteration runs Volley by each algorithm, the peer, and memcpy, one
after the other; a first iteration does not count. time, its time and memcpy
are medians; check is the time of the final check in one run more; compile is
the share of the first run in which programs were made ready. ratio is the time
over that of the peer: below 1 the peer is slower. memcpy copies all packets
once, on all cores. algbw is K packets over the time, busbw C2 packets over the
time. #wrong counts coded packets that are not what the peer has or, where its
matrix is another, what a direct sum gives; the exit code then is 3. Messages
cost next to nothing in one process, so auto takes the plan of the fewest
multiply-adds. An algorithm that does not take the matrix of a case has no row
there. docs/metrics.md explains the table.

Cases
%s`

// benchCases lists what bench can measure.
func benchCases() string {
	var text strings.Builder
	for _, c := range bench.Cases() {
		printable.Fprintf(&text, "  %-10s %s\n", c.Name, printable.Lines(wrapped(c.Doc, 13)))
	}
	return strings.TrimRight(text.String(), "\n")
}

// wrapped breaks text that begins in a column into lines that all begin there.
func wrapped(text string, column int) string {
	var b strings.Builder
	at := column
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && at+1+n > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", column))
			at = column
		case i > 0:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
