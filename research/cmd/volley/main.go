// Volley is the command line of package volley with the algorithms of package research.
package main

import (
	"os"

	"volley/internal/cli"
	_ "volley/research"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
