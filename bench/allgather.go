package bench

import (
	"context"
	"time"

	"volley"
	"volley/algo/schedule"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/sim"
	"volley/transport/local"
)

// Everything to everyone: what moving bytes costs by itself. It is no encode, so the
// plan goes to the executor.
var allgatherCase = Case{
	Name: "allgather", Doc: "no coding: all packets to all processors; memcpy of as many bytes",
	Field: "2^8", Ks: []int{16}, Size: 1 << 20, Unit: 1, Peer: "memcpy",
	mostK: 128, plain: true, held: func(k int) int { return k*k + k },
	build: func(k int, size int64) (*workload, error) {
		f, err := field.Parse("2^8")
		if err != nil {
			return nil, err
		}
		w := &workload{inputs: randomPackets(f, k, size)}
		var gathered [][]byte // what each processor should have, one after the other
		for range k {
			gathered = append(gathered, w.inputs...)
		}
		w.outputs = sameShape(gathered)
		w.peer = func() error { copyAll(w.outputs, gathered); return nil }
		w.wrong = func() int { return wrongByBytes(w.outputs, gathered) }
		w.start = func(ctx context.Context, _ string) (run, error) {
			return gather(ctx, allgather(f, k, volley.DefaultPorts), w, size)
		}
		return w, nil
	},
}

// segment is how much of each packet is moved at a time, in bytes; it is what an encode
// of long packets has.
const segment = 256 << 10

// gather returns runs of the plan on the packets of w.
func gather(ctx context.Context, p plan.Plan, w *workload, size int64) (run, error) {
	compiling := time.Now()
	executable, err := executor.Prepare(ctx, p, 0, 1)
	if err != nil {
		return nil, err
	}
	compiled := time.Since(compiling).Seconds()
	cost := sim.Count(p)
	job := executor.Job{Executable: executable, Bytes: size, Segment: min(segment, size)}
	for _, packet := range w.inputs {
		job.Inputs = append(job.Inputs, executor.Input{Memory: packet})
	}
	for _, packet := range w.outputs {
		job.Outputs = append(job.Outputs, executor.Output{Memory: packet})
	}
	info := p.Info()
	return func(ctx context.Context, _ bool) (*volley.Report, error) {
		start := time.Now()
		if _, err := executor.Run(ctx, local.New(1)[0], job); err != nil {
			return nil, err
		}
		return &volley.Report{
			Algorithm: info.Algorithm, Ports: info.Ports, C1: cost.C1, C2: cost.C2, C2Packets: cost.PacketC2(),
			CompileSeconds: compiled, Seconds: compiled + time.Since(start).Seconds(),
		}, nil
	}, nil
}

// allgather returns a plan whose output i at every processor is the packet of
// processor i, in the rounds of the algorithm "bruck-allgather". Its matrix has K² columns:
// column K·k + i is output i of processor k. C1 = clog(K), C2 = ⌈(K-1)/p⌉.
func allgather(f field.Field, processors, ports int) plan.Plan {
	stages := schedule.WindowRounds(processors, ports)
	return &schedule.Programs{
		Common: plan.Info{
			Algorithm: "allgather", Field: f, Processors: processors, Ports: ports,
			Rows: processors, Columns: processors * processors,
			Phases: []plan.Phase{{Name: "gather", Rounds: len(stages)}},
		},
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			g := schedule.Everyone(processors, proc)
			outputs := make([]plan.Slot, processors)
			for i, slot := range schedule.Gather(b, g, stages, 1, processors, b.Inputs(1)) {
				outputs[g.Around(-i)] = slot
			}
			return outputs
		},
		ColumnOf: func(proc, output int) int { return processors*proc + output },
		Kinds:    func(context.Context) []plan.Class { return schedule.OneClass(processors) },
	}
}
