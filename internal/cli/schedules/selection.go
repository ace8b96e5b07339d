package schedules

import (
	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/selection"
)

// selectionFlags are the flags by which every verb selects a matrix and a plan, in the groups of --help.
type selectionFlags struct{ selection.Selection }

func (c *selectionFlags) addMatrix(cmd *cobra.Command, s *session.Invocation) {
	defer session.FlagGroup(cmd, "Matrix")()
	c.AddMatrix(cmd.Flags())
	c.Open = s.OpenInput
}

// addPlan adds the flags that select a plan for a matrix, by the model of a network.
func (c *selectionFlags) addPlan(cmd *cobra.Command) {
	end := session.FlagGroup(cmd, "Plan")
	c.AddPlan(cmd.Flags())
	end()
	c.addModel(cmd, selection.NetworkModel)
	c.addLimits(cmd)
}

// addLimits adds the flags that bound the choice of a plan.
func (c *selectionFlags) addLimits(cmd *cobra.Command) {
	defer session.FlagGroup(cmd, "Limit")()
	c.AddLimits(cmd.Flags())
}

// addModel adds the flags of the cost model.
func (c *selectionFlags) addModel(cmd *cobra.Command, usual string) {
	defer session.FlagGroup(cmd, "Cost model")()
	c.AddModel(cmd.Flags(), usual)
}
