// Command pages writes the man pages of the heddle command and its completions for shells into a folder: man/man1 and completions.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/heddle-stream/heddle/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pages DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// write makes all of it. The same command and date give the same bytes.
func write(dir string) error {
	root := cli.Command()
	man, completions := filepath.Join(dir, "man", "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	// The month it prints is that of $SOURCE_DATE_EPOCH.
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "HEDDLE", Section: "1", Source: "Heddle", Manual: "Heddle"}, man); err != nil {
		return fmt.Errorf("cannot write the man pages: %w", err)
	}
	return complete(root, completions)
}

// complete writes the completions under the names by which shells look for them.
func complete(root *cobra.Command, dir string) error {
	for name, write := range map[string]func(string) error{
		"heddle.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_heddle":     root.GenZshCompletionFile,
		"heddle.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot write completions: %w", err)
		}
	}
	return nil
}
