// Volley-lab is volley with all families of algorithms and all fields, pictures and the page.
package main

import (
	"os"

	"volley/internal/cli"
	_ "volley/lab/verbs"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
