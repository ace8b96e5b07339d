//go:build js && wasm

// Command wasm is the engine of the page where no server is. In a web worker it sets the function volleyCall(method,
// request, line), which calls line with every line of the answer. It returns {done, cancel}: a promise, and a function
// that ends the call. Calls run one after the other.
package main

import (
	"context"
	"sync"
	"syscall/js"

	"volley/lab/explore"
)

func main() {
	var turn sync.Mutex
	js.Global().Set("volleyCall", js.FuncOf(func(_ js.Value, args []js.Value) any {
		method, request, put := args[0].String(), args[1].String(), args[2]
		ctx, cancel := context.WithCancel(context.Background())
		stop := js.FuncOf(func(js.Value, []js.Value) any {
			cancel()
			return nil
		})
		answer := promise(func() error {
			defer stop.Release()
			defer cancel()
			turn.Lock()
			defer turn.Unlock()
			_, err := explore.Answer(ctx, method, []byte(request), lines(func(line string) { put.Invoke(line) }))
			return err
		})
		return map[string]any{"done": answer, "cancel": stop}
	}))
	select {}
}

// lines is a writer to a function.
type lines func(string)

func (f lines) Write(data []byte) (int, error) {
	f(string(data))
	return len(data), nil
}

// promise returns a promise for what f does.
func promise(f func() error) js.Value {
	var executor js.Func
	executor = js.FuncOf(func(_ js.Value, args []js.Value) any {
		resolve, reject := args[0], args[1]
		go func() {
			defer executor.Release()
			if err := f(); err != nil {
				reject.Invoke(js.Global().Get("Error").New(err.Error()))
				return
			}
			resolve.Invoke()
		}()
		return nil
	})
	return js.Global().Get("Promise").New(executor)
}
