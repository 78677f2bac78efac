package jobstory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// settlement is what a transaction came to for the position's owner.
func (y *Story) settlement(j job.Job, s *job.Settlement) string {
	parts := []string{"closed " + text.USD(s.SizeDeltaUsd), "left " + text.USD(s.SizeLeftUsd),
		"collateral taken " + y.Names.Amount(j.Collateral, s.CollateralDelta),
		"left " + y.Names.Amount(j.Collateral, s.CollateralLeft)}
	for _, p := range s.Returned {
		parts = append(parts, "returned "+y.Names.Amount(p.Token, p.Amount))
	}
	if s.Insolvent {
		parts = append(parts, "bad debt "+text.USD(s.BadDebtUsd))
	}
	return strings.Join(parts, ", ")
}

// closer is who closed a position, order or request, other than this keeper by an attempt that is stored.
type closer struct {
	by    string
	tx    chain.Tx
	stamp perp.Stamp
}

// addChain adds what the state has of a position, order or request, and who closed it.
func (y *Story) addChain(ctx context.Context, db *pg.DB, key chain.Hash) error {
	order, err := db.Order(ctx, key)
	if err != nil {
		return err
	}
	if o := order.Row; order.Known {
		y.addLog(ctx, o.Birth, "made", fmt.Sprintf("order (%v) of %s in market %s, change %d", o.OrderType, o.Account,
			o.Market, o.Changes))
		return y.addEnd(ctx, db, key, o.Birth, o.Stamp,
			fmt.Sprintf("the order is %s%s", o.Status, text.Because(o.Reason)))
	}
	request, err := db.Request(ctx, key)
	if err != nil {
		return err
	}
	if r := request.Row; request.Known {
		y.addLog(ctx, r.Birth, "made", fmt.Sprintf("%s of %s in market %s", r.Kind, r.Account, r.Market))
		return y.addEnd(ctx, db, key, r.Birth, r.Stamp,
			fmt.Sprintf("the %s is %s%s", r.Kind, r.Status, text.Because(r.Reason)))
	}
	position, err := db.Position(ctx, key)
	if p := position.Row; err == nil && position.Known {
		return y.addEnd(ctx, db, key, perp.Stamp{}, p.Stamp, fmt.Sprintf("the position of %s in market %s, %s, is "+
			"%s with %s open", p.Account, p.Market, text.Side(p.IsLong), p.Status, text.USD(p.SizeInUsd)))
	}
	return err
}

// addLog adds the log that made a row what it is, and where the topic has it.
func (y *Story) addLog(ctx context.Context, at perp.Stamp, what, detail string) {
	where := fmt.Sprintf("block %d log %d", at.Block, at.Log)
	if offset := y.locate(ctx, at); offset != "" {
		where += ", " + offset
	}
	y.addf(time.UnixMilli(int64(at.TimeMs)), "", 0, what, where, "%s", detail)
}

// addEnd adds the newest log of a row, and who sent its transaction.
func (y *Story) addEnd(ctx context.Context, db *pg.DB, key chain.Hash, birth, at perp.Stamp,
	detail string) error {
	if at == birth {
		y.addf(time.Now(), "", 0, "now", fmt.Sprintf("block %d log %d", at.Block, at.Log), "%s", detail)
		return nil
	}
	y.addLog(ctx, at, "changed", detail)
	found, err := db.Transaction(ctx, at.TxHash)
	if err != nil || !found.Known {
		return err
	}
	tx := found.Row.Tx
	y.closers[key] = closer{y.who(tx.From), tx, at}
	y.addf(time.UnixMilli(int64(at.TimeMs)), "", 0, "by", "tx "+tx.Hash.Hex(), "%s, nonce %d, gas %d, cost %s",
		y.who(tx.From), tx.Nonce, tx.GasUsed, text.BNB(text.Cost(tx.GasUsed, tx.GasPrice)))
	return nil
}

// who names an account by what is configured of it.
func (y *Story) who(account chain.Address) string {
	if y.signers[account] {
		return "this keeper's signer " + account.Hex()
	}
	for _, p := range y.Tier.Peers {
		if slices.Contains(p.Signers, account) {
			return fmt.Sprintf("tier %d's signer %s", p.Tier, account)
		}
	}
	return account.Hex() + ", which is no keeper that is configured"
}
