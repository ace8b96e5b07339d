//go:build js && wasm

// Command wasm is the engine of the page where no server is. In a web worker it sets the function volleyCall(method,
// request). It returns {done, cancel}: a promise of the answer, and a function that ends the call. Calls run one after
// the other.
package main

import (
	"context"
	"strings"
	"sync"
	"syscall/js"

	"volley/lab/explore"
)

func main() {
	var turn sync.Mutex
	js.Global().Set("volleyCall", js.FuncOf(func(_ js.Value, args []js.Value) any {
		method, request := args[0].String(), args[1].String()
		ctx, cancel := context.WithCancel(context.Background())
		stop := js.FuncOf(func(js.Value, []js.Value) any {
			cancel()
			return nil
		})
		answer := promise(func() (string, error) {
			defer stop.Release()
			defer cancel()
			turn.Lock()
			defer turn.Unlock()
			var text strings.Builder
			_, err := explore.Answer(ctx, method, []byte(request), &text)
			return text.String(), err
		})
		return map[string]any{"done": answer, "cancel": stop}
	}))
	select {}
}

// promise returns a promise of what f returns.
func promise(f func() (string, error)) js.Value {
	var executor js.Func
	executor = js.FuncOf(func(_ js.Value, args []js.Value) any {
		resolve, reject := args[0], args[1]
		go func() {
			defer executor.Release()
			text, err := f()
			if err != nil {
				reject.Invoke(js.Global().Get("Error").New(err.Error()))
				return
			}
			resolve.Invoke(text)
		}()
		return nil
	})
	return js.Global().Get("Promise").New(executor)
}
