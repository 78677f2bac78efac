package devnet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Usage names the commands in one line: each is a devnet method, of this package's control or of the node.
const Usage = "shock|pin|unpin|reorg|stall|stall-finality|resume|payment-lane|trade|upgrade|retire|role|announce|" +
	"deployment"

const commandTimeout = 30 * time.Second

// Command tells a running devnet what args say and prints its answer as JSON: a command, and then the items of its
// argument, as in shock --token WETH --percent -20. --rpc is where the devnet answers. It returns the exit code: 0, 1
// if the devnet refused or was not reached, 2 if the command line is wrong.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	url, argument := "http://127.0.0.1:8545", map[string]json.RawMessage{}
	for rest := args[1:]; len(rest) > 0; {
		name, is := strings.CutPrefix(rest[0], "--")
		name, value, joined := strings.Cut(name, "=")
		if rest = rest[1:]; !joined && len(rest) > 0 {
			value, rest, joined = rest[0], rest[1:], true
		}
		if !is || !joined {
			_, _ = fmt.Fprintf(stderr, "devnet %s: want --name value (there are %s)\n", args[0], Usage)
			return 2
		}
		if name == "rpc" {
			url = value
			continue
		}
		if argument[name] = json.RawMessage(value); !json.Valid(argument[name]) {
			argument[name] = json.RawMessage(strconv.Quote(value))
		}
	}
	if err := tell(ctx, url, methodOf(args[0]), argument, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "devnet %s: %v (there are %s)\n", args[0], err, Usage)
		return 1
	}
	return 0
}

// methodOf is the devnet method of a command: devnet_stallFinality of stall-finality.
func methodOf(command string) string {
	words := strings.Split(command, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
	}
	return "devnet_" + strings.Join(words, "")
}

// tell calls a method of a running devnet and prints its answer as JSON.
func tell(ctx context.Context, url, method string, argument map[string]json.RawMessage, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", url, err)
	}
	defer client.Close()
	var params []any
	if len(argument) > 0 {
		params = append(params, argument)
	}
	var answer json.RawMessage
	if err := client.CallContext(ctx, &answer, method, params...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n", answer)
	return err
}
