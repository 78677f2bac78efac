package canon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
)

// OfDemo opens the chain of a stack, with all keepers' signers.
func OfDemo(ctx context.Context, d demo.Devnet) (*Chain, error) {
	var signers []chain.Address
	for _, a := range d.Accounts {
		if a.Purpose == "keeper" {
			signers = append(signers, a.Address)
		}
	}
	return Open(ctx, d.ChainID, d.RPC, d.Contracts["eventEmitter"], d.Block, signers...)
}

// Tell calls a method of the devnet's own.
func (c *Chain) Tell(ctx context.Context, method string, argument ...any) error {
	return c.rpc.CallContext(ctx, nil, method, argument...)
}

// HoldPrices keeps every price of a stack where it is.
func (c *Chain) HoldPrices(ctx context.Context, d demo.Devnet) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Feed+"/v1/reports", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var reports []struct {
		Token    chain.Address `json:"token"`
		MinPrice chain.Uint    `json:"minPrice"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&reports); err != nil {
		return fmt.Errorf("the reports: %w", err)
	}
	for _, token := range d.Tokens {
		for _, r := range reports {
			if r.Token != token.Address || token.Symbol == "USDC" {
				continue
			}
			// millionths of a dollar for a whole token
			micro := r.MinPrice.Div(chain.Pow10(30 - 6 - token.Decimals)).String()
			whole := len(micro) - 6
			if err := c.Tell(ctx, "devnet_pin",
				map[string]any{"token": token.Symbol, "usd": micro[:whole] + "." + micro[whole:]}); err != nil {
				return err
			}
		}
	}
	return nil
}
