// Package schedule has what an algorithm is written with. Two ideas carry everything: a
// [Step] is a schedule for one group of processors that together compute one small matrix,
// and a [Grouping] runs a step in many groups side by side. [Compile] makes the plan of a
// product of partitions; [Programs] of another shape is written processor by processor.
//
// A step writes its schedule and its coding once, for one processor of a group, on a [Builder]; mere schedules come
// from the same code. What hands packets on is written once: adding up is the same backwards, see [Builder.Transposed].
package schedule
