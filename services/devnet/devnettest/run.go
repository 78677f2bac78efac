package devnettest

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/services/devnet"
)

// Run is [devnet.Start] without a log, for tests: the exchange is deployed once in a process for all devnets that can
// begin with it, which is most of what starting one takes.
func Run(ctx context.Context, cfg devnet.Config) (*devnet.Devnet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	deploy := sync.OnceValues(func() (*devnet.Origin, error) { return devnet.Deploy(context.Background(), cfg) })
	shared, _ := origins.LoadOrStore(cfg.Foundation(), deploy)
	origin, err := shared.(func() (*devnet.Origin, error))() //nolint:forcetypeassert // nothing else is stored
	if err != nil {
		return nil, err
	}
	return origin.Start(ctx, cfg, zerolog.Nop())
}

// origins has what was deployed, or is being deployed, by its foundation.
var origins sync.Map
