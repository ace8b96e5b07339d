package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"volley/bench"
	"volley/bench/instructions"
)

// measureSets measures by a process for each set of instructions, with the flags that are set in f.
func (o *options) measureSets(ctx context.Context, stderr io.Writer, f *pflag.FlagSet) ([]bench.Result, error) {
	var args []string
	f.Visit(func(flag *pflag.Flag) {
		if flag.Name != "instructions" && flag.Name != "format" {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var results []bench.Result
	for set := range strings.SplitSeq(o.sets, ",") {
		program := self
		if set == instructions.Portable && instructions.Current() != set {
			dir, err := os.MkdirTemp("", "speed")
			if err != nil {
				return nil, err
			}
			defer os.RemoveAll(dir)
			program = filepath.Join(dir, "speed")
			target := reflect.TypeFor[bench.Result]().PkgPath() + "/cmd/speed" // whatever the module's path
			build := exec.CommandContext(ctx, "go", "build", "-o", program, "-tags", instructions.Tags, target)
			if build.Stderr = stderr; build.Run() != nil {
				return nil, fmt.Errorf("cannot build speed for --instructions %s: run it in the checkout, with the go command", set)
			}
		}
		measured, err := measureSet(ctx, stderr, program, set, args)
		if err != nil {
			return nil, fmt.Errorf("instructions %s: %w", set, err)
		}
		results = append(results, measured...)
	}
	return results, nil
}

// measureSet runs the program, which keeps to the set.
func measureSet(ctx context.Context, stderr io.Writer, program, set string, args []string) ([]bench.Result, error) {
	var table struct{ Rows []bench.Result }
	var stdout bytes.Buffer
	c := exec.CommandContext(ctx, program, append(args, "--format=json")...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), instructions.Environment(set)...), &stdout, stderr
	failed := c.Run()
	if failed != nil && !errors.As(failed, new(*exec.ExitError)) {
		return nil, failed
	}
	if err := json.Unmarshal(stdout.Bytes(), &table); err != nil { // where packets are wrong there is a table, too
		return nil, errors.Join(failed, err)
	}
	return table.Rows, nil
}
