// Package follow runs the two processes that make state of a devnet's chain, inside a test.
package follow

import (
	"testing"

	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/scanner"
	"perpkeeper/services/statevm"
	"perpkeeper/test/rig"
)

// Keeper is what all processes of a keeper are told alike.
type Keeper struct {
	Keeper   wire.Config
	Kafka    bus.Config
	Postgres pg.Config
	Chain    evm.Config
	Venue    gmx.Config
}

// At is the venue of a devnet.
func At(d *devnet.Devnet) gmx.Config {
	return gmx.Config{DataStore: chain.Address(d.Deployment().Contracts.DataStore)}
}

// Run runs the scanner and the statevm of a keeper, which make state of a devnet's chain.
func (k Keeper) Run(tb testing.TB, d *devnet.Devnet, log func(name string) zerolog.Logger,
	change ...func(*scanner.Config)) {
	tb.Helper()
	scan := scanner.DefaultConfig()
	scan.Keeper, scan.Chain, scan.Kafka, scan.Venue = k.Keeper, k.Chain, k.Kafka, k.Venue
	scan.Scanner.StartBlock, scan.Scanner.Price.URL = 1, secret.MustURL(d.Feed())
	for _, c := range change {
		c(&scan)
	}
	vm := statevm.DefaultConfig()
	vm.Keeper, vm.Kafka, vm.Postgres = k.Keeper, k.Kafka, k.Postgres
	rig.Host(tb, "scanner", log("scanner"), func(sh *service.Shell) error { return scanner.Start(sh, scan) })
	rig.Host(tb, "statevm", log("statevm"), func(sh *service.Shell) error { return statevm.Start(sh, vm) })
}
