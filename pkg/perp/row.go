package perp

import "perpkeeper/pkg/chain"

// Table names one kind of derived row. Its text is the name of the Postgres table as well.
type Table string

// The tables of derived state. Each row is written by exactly one partition of the log topic, save the parameters: see
// [Table.Replicated].
const (
	Positions     Table = "position"
	Orders        Table = "perp_order"
	Requests      Table = "request"
	Markets       Table = "market"
	MarketValues  Table = "market_value"
	Parameters    Table = "parameter"
	BadDebts      Table = "bad_debt"
	Transactions  Table = "transaction"
	OracleSources Table = "oracle_source"
	Settlements   Table = "settlement"
	KeeperFees    Table = "keeper_fee"
)

// Tables lists every table in the order in which checksums and dumps name them.
func Tables() []Table {
	return []Table{Positions, Orders, Requests, Markets, MarketValues, Parameters, BadDebts, Transactions,
		OracleSources, Settlements, KeeperFees}
}

// Resident reports whether a table is small and read by the folding of other rows: whoever keeps a [State] holds its
// rows in memory, so that Apply may read any of them without having named them in [Event.Touches]. It is small because
// the exchange alone adds to it. Parameters are not: anybody sets words of his own account, as many as he has accounts.
func (t Table) Resident() bool {
	return t == Markets || t == MarketValues || t == OracleSources
}

// Replicated reports whether every partition of the log topic carries all rows of a table. Accruing funding takes the
// parameters of the exchange, and a partition folds by itself: it cannot look into another one, which may stand at
// another block. Readers of several partitions take the copy of partition 0.
func (t Table) Replicated() bool { return t == Parameters }

// RowKey identifies a row in every keeper alike.
type RowKey struct {
	Table Table
	Key   chain.Hash
}

// Row is one row of derived state. Rows are values: a stored row is never changed in place.
type Row interface {
	RowKey() RowKey
}

// State is where [Apply] reads and writes rows: a working set over Postgres in statevm, a map in the fold tool.
type State interface {
	// Get returns the row, or nil when there is none.
	Get(RowKey) Row
	// Put stores the row in place of the one with the same key.
	Put(Row)
}

// Stamp is the log that last touched a row.
type Stamp struct {
	Block  uint64     `json:"block"`
	Log    uint32     `json:"log"`
	TxHash chain.Hash `json:"txHash"`
	// TimeMs is the block's time in Unix milliseconds: since when a request is due (TIER-9).
	TimeMs uint64 `json:"timeMs"`
}

// Seconds is the block's time as the contracts see it.
func (s Stamp) Seconds() uint64 { return s.TimeMs / 1000 }
