package console

import (
	"fmt"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/service"
	"perpkeeper/services/console/signin"
	"perpkeeper/services/console/web"
)

// startPages serves what operators see in a browser. They are there before the stores are, and say which are away.
func startPages(sh *service.Shell, cfg Config, db *pg.DB, client *bus.Client, node *evm.Client,
	names *naming.Names) error {
	users, err := signin.OpenUsers(cfg.Own.Users)
	if err != nil {
		return fmt.Errorf("console.users: %w", err)
	}
	deps := web.Deps{DB: db, Kafka: client, Names: names,
		Authority: signin.NewAuthority(users, time.Now), Keeper: cfg.Keeper,
		Tier: cfg.Tier, Signers: cfg.Keeper.Signers, PriceMaxAge: due.PriceMaxAge,
		VolatilityWindow: cfg.Liquidation.VolatilityWindow,
		Processes:        cfg.Own.Processes, TLS: cfg.Own.TLS, Proxies: cfg.Own.Proxies, Log: sh.Log, Now: time.Now}
	deps.Rules = due.Rules{FireRatio: cfg.Liquidation.FireRatio.Factor}
	if node != nil {
		deps.Node = node
	}
	pages, err := web.New(sh.Context(), deps)
	if err != nil {
		return fmt.Errorf("making the pages: %w", err)
	}
	sh.Handle("/", pages)
	if users.Empty() {
		sh.Log.Warn().Str("users", cfg.Own.Users).
			Msg("nobody can sign in: the file of users has none (a line each: NAME ROLE HASH; keeperctl password)")
	}
	return nil
}
