// Man writes the man pages of volley into a directory: volley(1), volley-VERB(1) for each verb, volley-group-init(1),
// and volley-TOPIC(7).
package main

import (
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"volley"
	"volley/internal/cli"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: man DIR")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal("man: ", err)
	}
}

// write writes all pages. SOURCE_DATE_EPOCH is the date in them, as in all builds that can be repeated.
func write(dir string) error {
	date := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(seconds, 0).UTC()
	}
	root := cli.Command()
	list := []*cobra.Command{root}
	for i := 0; i < len(list); i++ {
		cmd := list[i]
		section := "1"
		if cmd.IsAdditionalHelpTopicCommand() {
			section = "7"
		} else if !cmd.IsAvailableCommand() {
			continue
		}
		list = append(list, cmd.Commands()...)
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		cmd.DisableAutoGenTag = true
		cmd.Long = blocks(cmd.Long)
		page, err := os.Create(filepath.Join(dir, name+"."+section))
		if err != nil {
			return err
		}
		header := &doc.GenManHeader{Section: section, Date: &date, Source: "volley " + volley.Version, Manual: "Volley"}
		if err := doc.GenMan(cmd, header, page); err != nil {
			return err
		}
		if err := page.Close(); err != nil {
			return err
		}
	}
	return nil
}

// blocks returns a text with what is indented as Markdown's blocks, the lines of which stay as they are.
func blocks(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if indented := strings.HasPrefix(line, "  "); indented != inside && line != "\n" {
			b.WriteString("\n")
			inside = indented
		}
		if inside {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
