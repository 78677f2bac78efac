package arch

import "slices"

// Groups of rooms, innermost first. Imports point one way: vocabularies ← rooms ← adapters ← services ← lab.
var (
	vocabularies = []string{"pkg/chain", "pkg/perp", "pkg/job"}
	tools        = []string{"pkg/retry", "pkg/setting/check", "pkg/setting/secret", "pkg/instrument/failpoint",
		"pkg/instrument/metric", "pkg/transport", "pkg/risk/priceindex"}
	inner = slices.Concat(vocabularies, tools)
	// sending is what a transaction's life is written in; it knows no venue.
	sending = slices.Concat([]string{"pkg/chain", "pkg/job"}, tools)
	// rooms are rules: they know no vendor and no database.
	rooms = []string{
		"pkg/txmgr/lease/...", "pkg/txmgr/nonce/...", "pkg/txmgr/txm/...", "pkg/risk/...", "pkg/tier",
		"pkg/tier/execution/...", "pkg/delayed/...", "pkg/ttl/...", "pkg/pg/retention",
		"pkg/operator/emergency/...", "pkg/operator/pnl", "pkg/operator/shadow",
	}
	// state is what a process needs to read the topics and the database.
	state = slices.Concat(inner, rooms, []string{"pkg/service/...", "pkg/kafka/wire", "pkg/kafka/bus", "pkg/gmx",
		"pkg/pg"})
)

// house is the import table of this module, as docs/architecture.md draws it.
var house = table{
	Rooms: []room{
		{Path: "pkg/chain"},
		{Path: "pkg/perp", May: []string{"pkg/chain"}},
		{Path: "pkg/job", May: []string{"pkg/chain"}},
		{Path: "pkg/retry"},
		{Path: "pkg/setting/secret"},
		{Path: "pkg/instrument/failpoint"},
		{Path: "pkg/transport/..."},
		{Path: "pkg/setting/check"},
		{Path: "pkg/instrument/metric"},
		{Path: "pkg/service/...", May: inner},
		{Path: "pkg/risk/priceindex"},
		{Path: "pkg/risk/...", May: inner},
		{Path: "pkg/delayed/...", May: inner},
		{Path: "pkg/ttl/...", May: tools},
		{Path: "pkg/gmx/...", May: inner},
		{Path: "pkg/notify/...", May: inner},
		{Path: "pkg/price/...", May: slices.Concat(inner, []string{"pkg/kafka/wire"})},

		{Path: "pkg/tier/...", May: slices.Concat(inner, []string{"pkg/ttl"})},
		{Path: "pkg/tier/execution/...", May: inner},
		// what planners said and the chain shows, from the topics
		{Path: "pkg/tier/evidence", May: slices.Concat(inner, []string{"pkg/tier/execution", "pkg/kafka/..."})},

		{Path: "pkg/evm/agreement", May: []string{"pkg/chain"}},
		{Path: "pkg/evm/...", May: slices.Concat(sending, []string{"pkg/evm/agreement"})},

		{Path: "pkg/kafka/wire/...", May: vocabularies},
		{Path: "pkg/kafka/bus/...", May: slices.Concat(inner, []string{"pkg/kafka/wire"})},

		{Path: "pkg/txmgr/lease/...", May: sending},
		{Path: "pkg/txmgr/nonce/...", May: slices.Concat(sending, []string{"pkg/txmgr/lease"})},
		{Path: "pkg/txmgr/txm/...", May: slices.Concat(sending, []string{"pkg/txmgr/lease"})},
		// the conformance suite of stores, which implement all of them
		{Path: "pkg/txmgr/txm/txmtest", May: slices.Concat(sending, []string{"pkg/txmgr/..."})},
		{Path: "pkg/txmgr/signer/...", May: sending},
		// the clock of whoever acts on the chain
		{Path: "pkg/txmgr/headtrack", May: []string{"pkg/chain"}},
		// txmanager knows no venue: it is handed what to call, and asks its stages whether to.
		{Path: "pkg/txmgr/txmanager/...", May: slices.Concat(sending, []string{"pkg/txmgr/...", "pkg/evm/...",
			"pkg/ttl"})},

		// what all of Postgres stands on, and the derived state; it knows none of the packages below it
		{Path: "pkg/pg", May: slices.Concat(inner, rooms)},
		{Path: "pkg/pg/retention", May: tools},
		{Path: "pkg/pg/txstore", May: slices.Concat(inner, rooms, []string{"pkg/pg"})},
		// a sender in the midst of its work, for tests
		{Path: "pkg/pg/txstore/txstoretest", May: slices.Concat(inner, rooms, []string{"pkg/pg/..."})},
		// a database for every test
		{Path: "pkg/pg/pgtest", May: []string{"pkg/pg", "pkg/perp", "pkg/chain", "lab/embedded/postgres",
			"pkg/setting/secret", "pkg/transport/transporttest"}},

		// what operators see and do, by the command line and by the console alike
		{Path: "pkg/operator/...", May: slices.Concat(inner, rooms, []string{"pkg/kafka/...", "pkg/pg",
			"pkg/pg/txstore", "pkg/price", "pkg/evm"})},
		// naming asks tokens what they are called.
		{Path: "pkg/operator/naming", May: slices.Concat(inner, []string{"pkg/gmx", "pkg/operator/contract",
			"pkg/operator/text"})},
		{Path: "pkg/operator/emergency/...", May: inner},
		{Path: "pkg/operator/pnl", May: inner},
		{Path: "pkg/operator/shadow", May: inner},
		// audit reads the chain for the books of the ledger.
		{Path: "pkg/operator/audit/...", May: slices.Concat(inner, []string{"pkg/tier/execution/...", "pkg/evm",
			"pkg/gmx"})},
		{Path: "pkg/operator/snapshot", May: slices.Concat(inner, []string{"pkg/pg"})},

		// scanner cannot see Postgres.
		{Path: "services/scanner/...", May: slices.Concat(inner, []string{"pkg/service/...", "pkg/kafka/...",
			"pkg/evm", "pkg/gmx", "pkg/price/..."})},
		// statevm cannot see RPC.
		{Path: "services/statevm/...", May: state},
		// planner cannot see the chain.
		{Path: "services/planner/...", May: slices.Concat(state, []string{"pkg/price"})},
		{Path: "services/sender/...", May: slices.Concat(state, []string{"pkg/pg/txstore", "pkg/price", "pkg/evm",
			"pkg/txmgr/...", "pkg/tier/...", "services/sender/..."})},
		// turns know the clock and the evidence; no state, no node, no venue.
		{Path: "services/sender/turns", May: slices.Concat(inner, []string{"pkg/tier/...", "pkg/txmgr/..."})},
		// preflight knows the venue, the state and the nodes; neither nonces nor turns.
		{Path: "services/sender/preflight", May: slices.Concat(inner, []string{"pkg/tier", "pkg/txmgr/txm",
			"pkg/txmgr/txmanager", "pkg/txmgr/headtrack", "pkg/risk/...", "pkg/kafka/...", "pkg/gmx", "pkg/pg",
			"pkg/price", "pkg/evm"})},
		// the operator's tool asks the chain for balances and nonces; it sends nothing. It makes keystores, and opens
		// them to see that they can be (doctor), which asks the sources of prices as well.
		{Path: "services/keeperctl/...", May: slices.Concat(state, []string{"pkg/pg/txstore", "pkg/price/...",
			"pkg/evm", "pkg/txmgr/signer", "pkg/notify/...", "pkg/operator/..."})},
		// the operators' process: it has neither keys nor nonces.
		{Path: "services/console/...", May: slices.Concat(state, []string{"pkg/pg/txstore", "pkg/price", "pkg/evm",
			"pkg/notify/...", "pkg/txmgr/headtrack", "pkg/tier/evidence", "pkg/operator/...",
			"services/console/..."})},

		// Play worlds and the tools of acceptance. Nothing but tests and the kits of tests sees them.
		{Path: "lab/embedded/..."},
		{Path: "lab/devnet/...", May: slices.Concat(inner, []string{"pkg/service/..."})},
		// what recordings of the venue's logs leave, by the code that keeps the state
		{Path: "lab/recordings/...", May: slices.Concat(inner, []string{"pkg/gmx"})},
		// several keepers, played in virtual time with the services' own code
		{Path: "lab/simulator/...", May: slices.Concat(state, []string{"pkg/evm", "pkg/gmx/...", "pkg/price",
			"pkg/txmgr/...", "services/planner", "services/sender/..."})},
		// demo starts the other processes as processes; of the services it imports none.
		{Path: "lab/demo/...", May: slices.Concat(state, []string{"lab/embedded/...", "pkg/evm",
			"pkg/operator/audit"})},
		{Path: "test/...", May: []string{"pkg/...", "services/...", "lab/...", "test/..."}},
	},
	Vendors: []vendor{
		{Prefix: "github.com/segmentio/kafka-go", Only: []string{"pkg/kafka/bus/..."},
			Why: "only pkg/kafka/bus names the Kafka client"},
		{Prefix: "github.com/jackc/pgx", Only: []string{"pkg/pg/...", "test/bench", "test/hammer", "test/e2e"},
			Why: "only pkg/pg names the Postgres driver; benchmarks and audits look past it, and faults are planted"},
		{Prefix: "github.com/pressly/goose", Only: []string{"pkg/pg/..."}, Why: "only pkg/pg migrates"},
		{Prefix: "database/sql", Only: []string{"pkg/pg/..."}, Why: "only pkg/pg speaks SQL"},
		{Prefix: "github.com/spf13/viper", Only: []string{"pkg/service/..."},
			Why: "only pkg/service reads configuration"},
		{Prefix: "github.com/spf13/pflag", Only: []string{"pkg/service/..."}, Why: "only pkg/service reads flags"},
		{Prefix: "github.com/spf13/cobra", Only: []string{"services/keeperctl/...", "lab/recordings",
			"lab/simulator/cmd/..."},
			Why: "only tools have commands"},
		{Prefix: "github.com/ethereum/go-ethereum", Only: []string{"pkg/evm/...", "pkg/gmx/...", "pkg/txmgr/signer/...",
			"lab/devnet/...", "test/..."},
			Why: "only the adapters of the chain and the devnet name go-ethereum", Tests: true},
		{Prefix: "github.com/twmb/franz-go", Only: []string{"lab/embedded/broker", "pkg/kafka/bus/...", "test/..."},
			Why: "the embedded broker is no client"},
		{Prefix: "github.com/fergusstrange/embedded-postgres", Only: []string{"lab/embedded/postgres"},
			Why: "only the embedded Postgres downloads one"},
		{Prefix: "github.com/compose-spec/compose-go", Only: []string{"test/compose"},
			Why: "only the test of the compose file reads compose files"},
		{Prefix: "github.com/stretchr/testify", Only: nil, Why: "tests use the standard library"},
	},
}
