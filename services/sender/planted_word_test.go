package sender

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/scanner"
)

// A word that is written without an event is found: the row is right soon afterwards, and an order is executed once its
// market was audited.
func TestPlantedWordIsFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *scanner.Config) { cfg.Scanner.AuditInterval = time.Second })
	market := chain.Address(s.market.Address)
	s.eventually("the market was audited", func(ctx context.Context) bool {
		found, err := s.db.MarketValue(ctx, perp.AuditKey(market).Key)
		return err == nil && found.Known && found.Row.Value.Sign() > 0
	})
	deployer, err := devnet.Accounts(devnet.DeployerIndex, 1)
	if err != nil {
		t.Fatal(err)
	}
	id, index := common.Hash{0x1d, 31: 7}, s.market.Index
	key := perp.DataStoreKey("VIRTUAL_TOKEN_ID", chain.Address(index).Hash())
	if row, known := s.parameter(key); known {
		t.Fatalf("the state has the word before it is written: %+v", row)
	}
	if err := s.Venue.SetSilently(t.Context(), deployer[0].Key, "VIRTUAL_TOKEN_ID", id, index); err != nil {
		t.Fatal(err)
	}
	s.eventually("the word is in the state", func(context.Context) bool {
		row, known := s.parameter(key)
		return known && row.Value == chain.Hash(id) && row.Source == perp.FromCall
	})
	keeper, private := s.keeper(0)
	s.sender([]secret.String{private})
	j := s.orderJob(s.marketOrder(1000), keeper)
	s.say(j)
	if r := s.result(j.ID, 1); r.Outcome != job.Done {
		t.Errorf("the order ended as %+v", r)
	}
}

// parameter is a word as the state has it.
func (s *site) parameter(key chain.Hash) (perp.Parameter, bool) {
	s.t.Helper()
	snapshot, err := pgtest.Load(s.t.Context(), s.db, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range snapshot.Parameters {
		if p.Key == key {
			return p, true
		}
	}
	return perp.Parameter{}, false
}
