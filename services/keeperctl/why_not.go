package keeperctl

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/whynot"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
)

// whyNot reports why a position, order or request is not executed now, or that it is due: by the rules the planner
// uses, on the state and the reports of this moment.
func whyNot(ctx context.Context, s *session, args []string) error {
	if len(args) != 1 {
		return usagef("name one position, order or request by its key (0x and 64 digits)")
	}
	key, err := chain.ParseHash(args[0])
	if err != nil {
		return usagef("%q is no key: %w", args[0], err)
	}
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	client, err := s.kafka()
	if err != nil {
		return err
	}
	board, err := whynot.Reports(ctx, client, s.Keeper.ChainID, due.PriceMaxAge)
	if err != nil {
		return notAsked(err)
	}
	moment, err := whynot.Present(ctx, db, board, s.rules(), due.PriceMaxAge)
	if err != nil {
		return err
	}
	return explain(ctx, s.out, db, s.names(ctx, db), moment, key)
}

// namesWithin is how long a command waits for what tokens are called.
const namesWithin = 2 * time.Second

// names are what the venue's tokens and markets are called. What nobody says in a moment is left out, and all of it for
// programs.
func (s *session) names(ctx context.Context, db *pg.DB) *naming.Names {
	if s.out.json {
		return nil
	}
	node, err := evm.Dial(ctx, s.Keeper.ChainID, s.Chain, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	names := naming.New(node, db)
	names.Read(ctx)
	return names
}

// explain finds what the key names and prints the decision.
func explain(ctx context.Context, out printer, db *pg.DB, names *naming.Names, m *due.Moment,
	key chain.Hash) error {
	what, d, err := whynot.Decide(ctx, db, m, key)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nstate   block %d, generation %d\n", inLine(names.In(what)), m.Block.Number, m.Generation)
	if d.Due {
		text += fmt.Sprintf("due     %s\njob     %s\n", inLine(names.In(d.Why)), d.Job.ID)
	} else {
		text += fmt.Sprintf("not due %s\n", inLine(names.In(d.Why)))
	}
	return out.either(struct {
		What       string `json:"what"`
		Block      uint64 `json:"block"`
		Generation uint32 `json:"generation"`
		Due        bool   `json:"due"`
		Why        string `json:"why"`
		Job        string `json:"job,omitempty"`
	}{what, m.Block.Number, m.Generation, d.Due, d.Why, d.Job.ID}, text)
}
