package console

import (
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/due"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/services/console/doctor"
	"perpkeeper/services/console/signin"
	"perpkeeper/services/console/web"
)

// startPages serves what operators see in a browser. They are there before the stores are, and say which are away.
// Where nobody can sign in yet, the log shows where the first user is made.
func startPages(sh *service.Shell, cfg Config, db *pg.DB, client *bus.Client, node *evm.Client) error {
	users, err := signin.OpenUsers(cfg.Own.Users)
	if err != nil {
		return fmt.Errorf("console.users: %w", err)
	}
	authority := signin.NewAuthority(users, time.Now)
	deps := web.Deps{DB: db, Kafka: client, Authority: authority, Keeper: cfg.Keeper, Tier: cfg.Tier,
		Signers: cfg.Own.Signers, PriceMaxAge: priceMaxAge,
		VolatilityWindow: cfg.Liquidation.VolatilityWindow,
		Doctor:           &doctor.Doctor{Command: cfg.Own.Doctor, Now: time.Now}, TLS: cfg.Own.TLS, Log: sh.Log,
		Now: time.Now}
	deps.Rules = due.Rules{FireRatio: cfg.Liquidation.FireRatio.Factor, SliceFactor: cfg.Liquidation.Slice.Factor}
	if node != nil {
		deps.Node = node
	}
	for _, text := range cfg.Own.Processes {
		name, address, _ := strings.Cut(text, "=")
		deps.Processes = append(deps.Processes, web.Process{Name: name, Address: strings.TrimSuffix(address, "/")})
	}
	pages, err := web.New(sh.Context(), deps)
	if err != nil {
		return fmt.Errorf("making the pages: %w", err)
	}
	sh.Handle("/", pages)
	token, err := authority.First()
	if err != nil || token == "" {
		return err
	}
	sh.Log.Warn().Str("link", siteOf(cfg.Own, sh.Addr())+"/welcome?token="+token).
		Msg("nobody can sign in yet: whoever opens this link first makes the first user, an admin")
	return nil
}

// siteOf is what a browser calls the pages by. For a process in a container, or behind a proxy, it has to be
// configured.
func siteOf(s Settings, listen string) string {
	if s.URL != "" {
		return strings.TrimSuffix(s.URL, "/")
	}
	return map[bool]string{true: "https", false: "http"}[s.TLS] + "://" + listen
}
