package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
)

// shadowReport is what keeperctl shadow report says.
type shadowReport struct {
	Scores []struct {
		Kind                                                   string
		Before, SameBlock, After, NeverFound, WronglyDue, Open int
		WouldHaveReverted                                      int
		Fees                                                   string
	}
	Distances []struct {
		Blocks     string
		Executions int
	}
	Faults []struct{ Fault, Kind, Job, Reason string }
}

// total is the last line of the scores.
func (r shadowReport) found() int {
	total := r.Scores[len(r.Scores)-1]
	return total.Before + total.SameBlock + total.After
}

func (k *keeper) shadowReport(ctx context.Context, grace time.Duration) (r shadowReport, err error) {
	said, failed := k.Shadow.Keeperctl(ctx, "shadow", "report", "--grace", grace.String(), "--output", "json")
	at := strings.Index(said, "{\n") // warnings may stand before it, and the verdict after
	if at < 0 {
		return r, fmt.Errorf("%w: %s", failed, said)
	}
	err = json.NewDecoder(strings.NewReader(said[at:])).Decode(&r)
	if err == nil && len(r.Scores) == 0 {
		err = fmt.Errorf("no scores: %s", said)
	}
	return r, err
}

// beside is a stack of the demo's three keepers and a shadow, whose own settings may be wrong.
func beside(t *testing.T, planted map[string]string) *keeper {
	t.Helper()
	k := startAdapted(t, func(s *demo.Settings) {
		s.Keepers, s.Shadow, s.BlockTime, s.Rate = 3, true, 450*time.Millisecond, 2
	}, func(s *demo.Stack) { s.Shadow.Also = planted })
	k.await("the shadow ready", k.Shadow.Ready)
	return k
}

// A shadow beside the demo's three keepers finds all that they execute, and nothing else.
func TestShadow(t *testing.T) {
	long(t)
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("KEEPER_LONG is not set: it watches for two minutes")
	}
	k := beside(t, nil)
	watched := time.NewTimer(2 * time.Minute)
	defer watched.Stop()
	select {
	case <-watched.C:
	case err := <-k.Failed():
		t.Fatal(err)
	}
	r, err := k.shadowReport(t.Context(), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 || r.found() < 50 || r.Scores[len(r.Scores)-1].Fees == "0" {
		t.Errorf("%+v", r)
	}
	t.Logf("%+v", r)
}

// What is wrong with a keeper shows in its score before it has a key: one that believes positions to be liquidated
// long before the venue does insists on what reverts.
func TestShadowOfASkewedKeeper(t *testing.T) {
	long(t)
	k := beside(t, map[string]string{"LIQUIDATION_FIRE_RATIO": "2"})
	k.awaitWronglyDue()
}

// A bug in how a fee is read, as if a position cost a tenth of its size to close, shows in the same way.
func TestShadowOfASkewedFee(t *testing.T) {
	long(t)
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("KEEPER_LONG is not set: the skewed ratio shows the same sooner")
	}
	k := beside(t, nil)
	k.skewFees(new(big.Int).Exp(big.NewInt(10), big.NewInt(29), nil))
	k.Shadow.Process("planner").Kill() // it reads what is planted when it starts again
	k.awaitWronglyDue()
}

// skewFees plants a factor for the fees of positions, of 30 decimals, in place of the venue's in the shadow's state.
func (k *keeper) skewFees(factor *big.Int) {
	k.t.Helper()
	markets, err := pgtest.Load(k.t.Context(), k.db, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	db, err := pgx.Connect(k.t.Context(), k.Shadow.Postgres)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	var planted int64
	for _, m := range markets.Markets {
		for _, improves := range []byte{0, 1} {
			key := perp.DataStoreKey("POSITION_FEE_FACTOR", m.MarketToken.Hash(), chain.Hash{31: improves})
			tag, err := db.Exec(k.t.Context(), `UPDATE state_g1.parameter SET value = $2 WHERE key = $1`, key[:],
				factor.FillBytes(make([]byte, 32)))
			if err != nil {
				k.t.Fatal(err)
			}
			planted += tag.RowsAffected()
		}
	}
	if planted == 0 {
		k.t.Fatal("the state has no fee of positions")
	}
}

// awaitWronglyDue waits until the shadow's score shows liquidations that are not due on the chain.
func (k *keeper) awaitWronglyDue() {
	k.t.Helper()
	k.await("jobs that are wrongly due", func(ctx context.Context) error {
		r, err := k.shadowReport(ctx, time.Minute)
		if err != nil {
			return err
		}
		for _, s := range r.Scores {
			if s.Kind == "liquidation" && s.WronglyDue > 0 && s.WouldHaveReverted >= s.WronglyDue {
				k.t.Logf("%+v", s)
				return nil
			}
		}
		return fmt.Errorf("%+v", r)
	})
}
