package selection

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A checked flag takes what is wanted of its kind.
type checked struct {
	kind, wanted string
	set          func(text string) bool // unless that is not wanted
	get          func() string          // "" or "0" shows as nothing
}

// Set takes a value.
func (c checked) Set(text string) error {
	if !c.set(text) {
		return errors.New("want " + c.wanted)
	}
	return nil
}

// String returns the value.
func (c checked) String() string { return c.get() }

// Type returns the kind.
func (c checked) Type() string { return c.kind }

// Wanted says what a flag takes that can be wrong by itself, such as "a whole number".
func Wanted(flag *pflag.Flag) string {
	if c, ok := flag.Value.(checked); ok {
		return c.wanted
	}
	return map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false"}[flag.Value.Type()]
}

// Word is a flag that takes one of some words.
func Word(value *string, words ...string) pflag.Value {
	return checked{"string", strings.Join(words, " or "), func(text string) bool {
		ok := slices.Contains(words, text)
		if ok {
			*value = text
		}
		return ok
	}, func() string { return *value }}
}

// number is a flag that takes a number. One below least stands for none.
func number(least int, get func() int, set func(int)) pflag.Value {
	return checked{"int", fmt.Sprintf("a whole number, %d or more", least), func(text string) bool {
		n, err := strconv.Atoi(text)
		ok := err == nil && n >= least
		if ok {
			set(n)
		}
		return ok
	}, func() string {
		if n := get(); n >= least {
			return fmt.Sprint(n)
		}
		return ""
	}}
}

// Positive is a flag that takes a number, 1 or more; 0 stands for none.
func Positive(value *int) pflag.Value {
	return number(1, func() int { return *value }, func(n int) { *value = n })
}

// Bytes is a flag that takes a size, or bytes a second: so many or more.
func Bytes(value *int64, usual string, least int64, wanted string) pflag.Value {
	text := usual
	*value, _ = ParseSize(usual) // "" is none
	return checked{"string", wanted, func(size string) bool {
		n, err := ParseSize(size)
		ok := err == nil && n >= least
		if ok {
			*value, text = n, size
		}
		return ok
	}, func() string { return text }}
}

// Interval is a flag that takes a time, 0 or more.
func Interval(value *time.Duration) pflag.Value {
	return checked{"duration", "a duration such as 30s, 0 or more", func(text string) bool {
		d, err := time.ParseDuration(text)
		ok := err == nil && d >= 0
		if ok {
			*value = d
		}
		return ok
	}, func() string {
		if *value == 0 {
			return "0"
		}
		return value.String()
	}}
}
