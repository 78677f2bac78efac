package keeperctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/txmgr/signer"
)

// keystoreCommand makes the files that a sender signs with. It speaks to nobody.
func keystoreCommand(cmd *cobra.Command) runner {
	flags := cmd.Flags()
	folder := flags.String("folder", "", "folder that the keystore and its password are written to, readable by "+
		"group and owner")
	given := flags.Bool("import", false, "take the private key from standard input, one line of hex, in place of "+
		"making a new one")
	return func(_ context.Context, s *session, args []string) error {
		if err := operand(folder, args); err != nil {
			return err
		}
		return createKeystore(*folder, *given, s)
	}
}

func createKeystore(folder string, given bool, s *session) error {
	if folder == "" {
		return usagef("no folder named; usage: keeperctl keystore FOLDER [--import]")
	}
	raw := ""
	if given {
		line, err := bufio.NewReader(io.LimitReader(s.in, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading the key from standard input: %w", err)
		}
		if raw = strings.TrimSpace(line); raw == "" {
			return errors.New("standard input holds no key (one line of hex)")
		}
	}
	address, err := signer.Create(folder, raw)
	if err != nil {
		return err
	}
	return sayf(s.out, "%s\n", address)
}
