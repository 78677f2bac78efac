package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
)

// The newest transactions of each account, by the index of senders.
var listSenders = Register("newest transactions of accounts", `SELECT a.account, count(t.key),
		count(t.key) FILTER (WHERE t.tx_ok), coalesce(max(t.stamp_time_ms), 0)::bigint
	FROM unnest($1::bytea[]) AS a (account) LEFT JOIN LATERAL (
		SELECT n.key, n.tx_ok, n.stamp_time_ms FROM {state}.transaction n
		WHERE n.tx_from = a.account AND n.deleted_at IS NULL
		ORDER BY n.tx_nonce DESC LIMIT $3) t ON t.stamp_time_ms >= $2
	GROUP BY a.account`)

// Sent counts what an account has sent to the exchange, as the chain shows it.
type Sent struct {
	Transactions, OK int
	Last             time.Time // by the chain; zero where there is none
}

// SentSince counts the transactions of accounts since a time of the chain, in the active generation; of each account
// the newest are looked at, at most so many.
func (db *DB) SentSince(ctx context.Context, accounts []chain.Address, since time.Time,
	most int) (map[chain.Address]Sent, error) {
	sent := map[chain.Address]Sent{}
	asked := make([][]byte, len(accounts))
	for i, a := range accounts {
		asked[i] = a[:]
	}
	err := db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := ActiveGeneration(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, listSenders.In(generation), asked, since.UnixMilli(), most)
		if err != nil {
			return err
		}
		var account []byte
		var s Sent
		var last int64
		_, err = pgx.ForEachRow(rows, []any{&account, &s.Transactions, &s.OK, &last}, func() error {
			s.Last = time.Time{}
			if last > 0 {
				s.Last = time.UnixMilli(last)
			}
			sent[AddressOf(account)] = s
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("counting what accounts have sent: %w", err)
	}
	return sent, nil
}
