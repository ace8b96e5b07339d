package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Describe writes the plan for people: a row per processor, a column per round, and in each cell the messages that the
// processor sends, with their content in the words of [Content.String]. It returns the errors of [Follow] and of w.
func Describe(w io.Writer, p Plan) error {
	f, err := Follow(p)
	if err != nil {
		return err
	}
	info := p.Info()
	if _, err := io.WriteString(w, head(info)); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	columns := []string{"processor"}
	for t, name := range info.PhaseOf() {
		columns = append(columns, fmt.Sprintf("round %d %s", t, name))
	}
	fmt.Fprintln(tw, strings.Join(append(columns, "result"), "\t"))
	for k := range info.Processors {
		prog, err := p.Program(k)
		if err != nil {
			return fmt.Errorf("plan: program of processor %d: %w", k, err)
		}
		row := []string{fmt.Sprint(k)}
		for _, r := range prog.Rounds {
			var cell []string
			for _, s := range r.Sends {
				cell = append(cell, fmt.Sprintf("→%d: %s", s.Dst, f.list(k, s.Slots)))
			}
			row = append(row, strings.Join(cell, "; "))
		}
		fmt.Fprintln(tw, strings.Join(append(row, f.list(k, prog.Outputs)), "\t"))
	}
	return tw.Flush()
}

// DescribeProgram writes a processor's program for people: what it computes, sends and receives in each round, by slot.
func DescribeProgram(w io.Writer, p Plan, proc int) error {
	prog, err := p.Program(proc)
	if err != nil {
		return fmt.Errorf("plan: program of processor %d: %w", proc, err)
	}
	info := p.Info()
	var b strings.Builder
	fmt.Fprintf(&b, "%sprocessor %d\n", head(info), proc)
	slot := 0
	for i := range prog.Inputs {
		fmt.Fprintf(&b, "  s%d = %s\n", slot, info.InitialName(p.Row(proc, i)))
		slot++
	}
	compute := func(list []Combination) {
		for _, c := range list {
			fmt.Fprintf(&b, "  s%d = %s\n", slot, c)
			slot++
		}
	}
	for t, name := range info.PhaseOf() {
		fmt.Fprintf(&b, "round %d %s\n", t, name)
		r := prog.Rounds[t]
		compute(r.Compute)
		for _, s := range r.Sends {
			fmt.Fprintf(&b, "  send to %d on port %d: %s\n", s.Dst, s.Port, slotList(s.Slots, slotName))
		}
		for _, v := range r.Recvs {
			var slots []Slot
			for range v.Count {
				slots = append(slots, slot)
				slot++
			}
			fmt.Fprintf(&b, "  receive from %d on port %d: %s\n", v.Src, v.Port, slotList(slots, slotName))
		}
	}
	if len(prog.Outputs) > 0 {
		b.WriteString("result\n")
		compute(prog.Compute)
		for o, s := range prog.Outputs {
			fmt.Fprintf(&b, "  %s = s%d\n", info.CodedName(p.Column(proc, o)), s)
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// String returns the combination as a sum, such as "s0 + 7·s3", and "0" when it is empty.
func (c Combination) String() string {
	if len(c) == 0 {
		return "0"
	}
	terms := make([]string, len(c))
	for i, term := range c {
		terms[i] = slotName(term.Slot)
		if coef := term.Coef.String(); coef != "1" {
			terms[i] = coef + "·" + terms[i]
		}
	}
	return strings.Join(terms, " + ")
}

// PhaseOf returns the name of the phase of every round.
func (i Info) PhaseOf() []string {
	names := make([]string, 0, i.Rounds())
	for _, ph := range i.Phases {
		for range ph.Rounds {
			names = append(names, ph.Name)
		}
	}
	return names
}

// head returns the lines that a description begins with.
func head(i Info) string {
	name := i.Algorithm
	if i.Parameters != "" {
		name += " (" + i.Parameters + ")"
	}
	text := fmt.Sprintf("%s: K = %d processors, p = %d, field %s, %d rounds\n", name, i.Processors, i.Ports, i.Field.Name(), i.Rounds())
	for _, note := range slices.Concat(i.Notes, i.Layers) {
		text += note + "\n"
	}
	return text
}

// list names the content of several slots.
func (f *Flow) list(proc int, slots []Slot) string {
	return slotList(slots, func(s Slot) string { return f.Content(proc, s).String() })
}

func slotList(slots []Slot, name func(Slot) string) string {
	names := make([]string, len(slots))
	for i, s := range slots {
		names[i] = name(s)
	}
	return strings.Join(names, " ")
}

func slotName(s Slot) string { return fmt.Sprintf("s%d", s) }
