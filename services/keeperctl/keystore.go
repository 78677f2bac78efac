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

// keystoreCommand makes the files that a sender signs with, readable by group and owner. It speaks to nobody.
func keystoreCommand(cmd *cobra.Command) runner {
	given := cmd.Flags().Bool("import", false, "take the private key from standard input, one line of hex, in place "+
		"of making a new one")
	return func(_ context.Context, s *session, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usagef("usage: keeperctl keystore FOLDER [--import]")
		}
		return createKeystore(args[0], *given, s)
	}
}

func createKeystore(folder string, given bool, s *session) error {
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
