// Command requirements prints docs/requirements.md. It fails if an id has no sentence, no implementation or no proving
// test.
package main

import (
	"fmt"
	"os"

	"perpkeeper/test/requirements"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

// run prints the document of the repository at root.
func run(root string) error {
	tree := os.DirFS(root)
	list, err := requirements.Load(tree)
	if err != nil {
		return err
	}
	sources, err := requirements.Scan(tree)
	if err != nil {
		return err
	}
	if problems := list.Check(sources); len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintln(os.Stderr, p)
		}
		return fmt.Errorf("%d problems with %s", len(problems), requirements.ListPath)
	}
	return list.Write(os.Stdout, sources)
}
