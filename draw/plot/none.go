//go:build nocharts

package plot

import (
	"errors"
	"io"
)

var errNone = errors.New("this program was built without charts: build it without -tags nocharts")

// SVG returns an error: the library that draws takes a third of a program.
func SVG(io.Writer, Chart) error { return errNone }

// PNG returns an error, too.
func PNG(io.Writer, Chart) error { return errNone }
