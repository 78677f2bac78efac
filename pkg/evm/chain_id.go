package evm

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/setting/secret"
)

// ChainID asks an endpoint which chain it belongs to, for whoever cannot say it to [Dial] yet.
func ChainID(ctx context.Context, at secret.URL) (uint64, error) {
	var id hexutil.Uint64
	client, err := rpc.DialContext(ctx, at.Reveal())
	if err == nil {
		defer client.Close()
		err = client.CallContext(ctx, &id, methodChainID)
	}
	if err != nil {
		return 0, fmt.Errorf("asking %s for its chain: %s", at, scrub(err.Error(), at))
	}
	return uint64(id), nil
}
