package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	_ "volley/field/curves"
	"volley/internal/selection"
	_ "volley/lab/families"
)

// A method answers one kind of question.
type method func(ctx context.Context, request []byte) (any, error)

// methods are all there are, by name.
var methods = map[string]method{
	"catalog": answer(catalog),
	"cost":    answer(compareCosts),
	"load":    answer(load),
	"mix":     answer(mix),
	"plan":    answer(showPlan),
	"protect": answer(estimateGroup),
	"sums":    answer(sums),
}

// answer makes a method of a function with a typed request.
func answer[Q, R any](f func(ctx context.Context, request Q) (R, error)) method {
	return func(ctx context.Context, request []byte) (any, error) {
		var q Q
		d := json.NewDecoder(bytes.NewReader(request))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return nil, fmt.Errorf("the request: %w", err)
		}
		return f(ctx, q)
	}
}

// reply is the whole answer.
type reply struct {
	Result any      `json:"result,omitempty"`
	Error  *problem `json:"error,omitempty"`
}

// problem is an error as the page gets it.
type problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Answer writes the answer as the package says: ok is false where it is an error, and err is that of w.
func Answer(ctx context.Context, name string, request []byte, w io.Writer) (ok bool, err error) {
	result, err := call(ctx, name, request)
	if err == nil {
		return true, json.NewEncoder(w).Encode(reply{Result: result})
	}
	p := &problem{Message: selection.Message(err)}
	if f := new(selection.Error); errors.As(err, &f) {
		p.Field = f.Flag
	}
	return false, json.NewEncoder(w).Encode(reply{Error: p})
}

// list returns s, and an empty list where it is nil: the page gets [], never null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// A panic is an error of the call: the page goes on.
func call(ctx context.Context, name string, request []byte) (result any, err error) {
	m, ok := methods[name]
	if !ok {
		return nil, fmt.Errorf("there is no method %q", name)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: this is a fault of the program: %v\n%s", name, r, debug.Stack())
		}
	}()
	return m(ctx, request)
}
