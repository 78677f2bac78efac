package devnettest

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
)

// Run is [devnet.Start] without a log, for tests: the exchange is deployed once in a process for all devnets that can
// begin with it, which is most of what starting one takes.
func Run(ctx context.Context, cfg devnet.Config) (*devnet.Devnet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	origin, err := deployed(cfg)()
	if err != nil {
		return nil, err
	}
	return origin.Start(ctx, cfg, zerolog.Nop())
}

// origins has what was deployed, or is being deployed, by its foundation.
var origins = struct {
	sync.Mutex
	by map[devnet.Foundation]func() (*devnet.Origin, error)
}{by: map[devnet.Foundation]func() (*devnet.Origin, error){}}

// deployed returns the deployment that a configuration can begin with. Who calls it first deploys.
func deployed(cfg devnet.Config) func() (*devnet.Origin, error) {
	origins.Lock()
	defer origins.Unlock()
	key := cfg.Foundation()
	if origins.by[key] == nil {
		origins.by[key] = sync.OnceValues(func() (*devnet.Origin, error) {
			return devnet.Deploy(context.Background(), cfg)
		})
	}
	return origins.by[key]
}
