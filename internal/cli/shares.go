package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"volley/group"
)

// addAccidents adds the flags of what may be gone, or have changed, since a group was last protected.
func addAccidents(f *pflag.FlagSet, o *group.ProtectOptions) {
	o.MaxDeleted, o.MaxChanged = group.DefaultMaxDeleted, group.DefaultMaxChanged
	f.Var((*share)(&o.MaxDeleted), "max-deleted", "`SHARE` of a node's files, or of their bytes, that may be gone")
	f.BoolVar(&o.AllowDeleted, "allow-deleted", false, "protect although more than that is gone")
	f.Var((*share)(&o.MaxChanged), "max-changed", "`SHARE` of a node's files that may have other content")
	f.BoolVar(&o.AllowChanged, "allow-changed", false, "protect although more than that has changed")
}

// A share is a flag from 0 to 1. What it sets is never 0, which the library takes for its default.
type share float64

// Set takes a number from 0 to 1. NaN is none.
func (s *share) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return errors.New("want a share from 0 to 1")
	}
	*s = share(max(x, math.SmallestNonzeroFloat64))
	return nil
}

// String returns the number.
func (s *share) String() string {
	if *s == math.SmallestNonzeroFloat64 {
		return "0"
	}
	return fmt.Sprint(float64(*s))
}

// Type returns "float".
func (s *share) Type() string { return "float" }

// A percent is a flag above 0 and up to 1, or from that to 100 with a percent sign.
type percent float64

// Set takes 10% or 0.1.
func (p *percent) Set(text string) error {
	number, of := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if of {
		x /= 100
	}
	if err != nil || !(x > 0 && x <= 1) {
		return errors.New("want a share such as 10%, up to 100%")
	}
	*p = percent(x)
	return nil
}

// String returns the number.
func (p *percent) String() string { return fmt.Sprint(float64(*p)) }

// Type returns "percent".
func (p *percent) Type() string { return "percent" }
