// Volley is the command line of package volley; see volley --help.
package main

import (
	"os"

	"volley/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
