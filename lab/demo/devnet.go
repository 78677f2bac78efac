package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
)

// Devnet is the devnet's deployment record: where to reach it, where the exchange lives, and
// its public keys.
type Devnet struct {
	ChainID   uint64                   `json:"chainId"`
	Block     uint64                   `json:"block"`
	RPC       string                   `json:"rpcUrl"`
	WS        string                   `json:"wsUrl"`
	Feed      string                   `json:"feedUrl"`
	Contracts map[string]chain.Address `json:"contracts"`
	Tokens    []Token                  `json:"tokens"`
	Accounts  []Account                `json:"accounts"`
}

// Token is one of the exchange's tokens.
type Token struct {
	Symbol   string        `json:"symbol"`
	Address  chain.Address `json:"address"`
	Decimals uint64        `json:"decimals"`
}

// Account is one of the devnet's well-known accounts.
type Account struct {
	Purpose string        `json:"purpose"`
	Address chain.Address `json:"address"`
	Key     string        `json:"privateKey"`
}

// keepers returns the first accounts that were granted the keeper roles.
func (d Devnet) keepers(count int) ([]Account, error) {
	var found []Account
	for _, a := range d.Accounts {
		if a.Purpose == "keeper" {
			found = append(found, a)
		}
	}
	if len(found) < count {
		return nil, fmt.Errorf("the devnet has %d keeper accounts and %d signers are wanted", len(found), count)
	}
	return found[:count], nil
}

// fireRatio makes the demo's venue one that liquidates below 110 % (LIQ-5), and its keeper one that knows.
const fireRatio = "1.10"

// errDevnetEnded is the end of the devnet: everybody else's state would be about a chain that no longer exists.
var errDevnetEnded = errors.New("the devnet ended")

func (s *Stack) startDevnet(ctx context.Context) error {
	record := filepath.Join(s.dir, "deployment.json")
	env := []string{
		"PERPKEEPER_DEVNET_RPC=127.0.0.1:0", "PERPKEEPER_DEVNET_FEED=127.0.0.1:0", "PERPKEEPER_DEVNET_OUT=" + record,
		"PERPKEEPER_DEVNET_CHAIN_ID=" + strconv.FormatUint(s.settings.ChainID, 10),
		"PERPKEEPER_DEVNET_LIQUIDATION_RATIO=" + fireRatio,
		"PERPKEEPER_DEVNET_BLOCK_TIME=" + s.settings.BlockTime.String(),
		"PERPKEEPER_DEVNET_RATE=" + strconv.Itoa(s.settings.Rate),
		"PERPKEEPER_DEVNET_SEED=" + strconv.FormatUint(s.settings.Seed, 10),
	}
	for name, value := range s.Chain {
		env = append(env, "PERPKEEPER_DEVNET_"+name+"="+value)
	}
	path, err := binary(s.binaries, "devnet")
	if err != nil {
		return err
	}
	p := &Process{Name: "devnet", path: path,
		env: append(env, "PERPKEEPER_LOG_FORMAT=json", "PERPKEEPER_HTTP_LISTEN=127.0.0.1:0"), log: s.log,
		file: filepath.Join(s.dir, "devnet.log")}
	ended := make(chan error, 1)
	s.running.Go(func() {
		if err := p.once(ctx); ctx.Err() == nil {
			err = errors.Join(errDevnetEnded, err, errors.New(p.Tail(5)))
			ended <- err
			s.fail(err)
		}
	})
	return s.awaitDevnet(ctx, record, ended)
}

// awaitDevnet waits for the record, which the devnet writes in one step when everything is up.
func (s *Stack) awaitDevnet(ctx context.Context, record string, ended <-chan error) error {
	tick, late := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case err := <-ended:
			return err
		case <-late:
			return fmt.Errorf("the devnet wrote no deployment record to %s within a minute", record)
		case <-ctx.Done():
			return ctx.Err()
		}
		if text, err := os.ReadFile(record); err == nil {
			return json.Unmarshal(text, &s.Devnet)
		}
	}
}

// command calls a method of the devnet's own, as `devnet trade` and its likes do.
func (d Devnet) command(ctx context.Context, method string, argument any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": []any{argument}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.RPC, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	text, _, err := fetch(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var answer struct {
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return fmt.Errorf("%s: reading the devnet's answer %.100q: %w", method, text, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: the devnet says: %s", method, answer.Error.Message)
	}
	return nil
}

// Trade lets the devnet's traders begin new things, or rest. What is under way goes on.
func (d Devnet) Trade(ctx context.Context, on bool) error {
	return d.command(ctx, "devnet_trade", map[string]any{"on": on})
}
