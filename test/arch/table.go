package arch

import "slices"

// Groups of rooms, innermost first. Imports point one way: vocabularies ← rooms ← adapters ← services.
var (
	vocabularies = []string{"pkg/chain", "pkg/perp", "pkg/job"}
	tools        = []string{"pkg/retry", "pkg/secret", "pkg/failpoint", "pkg/priceindex", "pkg/check", "pkg/metric"}
	inner        = slices.Concat(vocabularies, tools)
	rooms        = []string{
		"pkg/lease/...", "pkg/nonce/...", "pkg/txm/...", "pkg/liquidation/...", "pkg/due/...", "pkg/tier/...",
		"pkg/delayed/...", "pkg/ttl/...",
		"pkg/execution/...", "pkg/emergency/...", "pkg/pnl", "pkg/shadow", "pkg/retention", "pkg/checklog",
	}
	shell = []string{"pkg/service/..."}
)

// house is the import table of this module, as docs/architecture.md draws it.
var house = table{
	Rooms: []room{
		{Path: "pkg/chain"},
		{Path: "pkg/perp", May: []string{"pkg/chain"}},
		{Path: "pkg/job", May: []string{"pkg/chain", "pkg/perp"}},
		{Path: "pkg/check"},
		{Path: "pkg/metric"},
		{Path: "pkg/retry"},
		{Path: "pkg/secret"},
		{Path: "pkg/failpoint"},
		{Path: "pkg/priceindex"},
		{Path: "pkg/wire/...", May: vocabularies},

		{Path: "pkg/lease/...", May: inner},
		{Path: "pkg/nonce/...", May: append([]string{"pkg/lease"}, inner...)},
		{Path: "pkg/txm/...", May: append([]string{"pkg/lease"}, inner...)},
		// the conformance suite of stores, which implement all of them
		{Path: "pkg/txm/txmtest", May: slices.Concat(inner, rooms)},
		{Path: "pkg/liquidation/...", May: inner},
		{Path: "pkg/due/...", May: inner},
		{Path: "pkg/tier/...", May: append([]string{"pkg/ttl"}, inner...)},
		{Path: "pkg/delayed/...", May: inner},
		{Path: "pkg/ttl/...", May: tools},
		{Path: "pkg/execution/...", May: inner},
		{Path: "pkg/emergency/...", May: inner},
		{Path: "pkg/pnl", May: inner},
		{Path: "pkg/shadow", May: inner},
		{Path: "pkg/retention", May: tools},
		{Path: "pkg/checklog", May: inner},

		{Path: "pkg/agreement", May: []string{"pkg/chain"}},
		{Path: "pkg/evm/...", May: append([]string{"pkg/agreement"}, inner...)},
		{Path: "pkg/gmx/...", May: inner},
		{Path: "pkg/price/...", May: slices.Concat([]string{"pkg/wire"}, inner)},
		{Path: "pkg/signer/...", May: inner},
		{Path: "pkg/notify/...", May: inner},
		{Path: "pkg/bus/...", May: slices.Concat([]string{"pkg/wire"}, inner)},
		// audit reads the chain for the books of the ledger.
		{Path: "pkg/audit/...", May: slices.Concat(inner, []string{"pkg/execution/...", "pkg/evm", "pkg/gmx"})},
		// what all of Postgres stands on, and the derived state; it knows none of the packages below it
		{Path: "pkg/pg", May: slices.Concat(inner, rooms)},
		{Path: "pkg/pg/outbox", May: slices.Concat(inner, rooms, []string{"pkg/pg"})},
		// a sender in the midst of its work, for tests
		{Path: "pkg/pg/outbox/outboxtest", May: slices.Concat(inner, rooms, []string{"pkg/pg", "pkg/pg/outbox",
			"pkg/pg/pgtest"})},
		// a database for every test
		{Path: "pkg/pg/pgtest", May: []string{"pkg/pg", "pkg/perp", "pkg/embedded/postgres", "pkg/secret"}},
		// what planners said and the chain shows, from the topics
		{Path: "pkg/evidence", May: slices.Concat(inner, []string{"pkg/execution", "pkg/bus", "pkg/wire"})},
		// the clock of whoever acts on the chain
		{Path: "pkg/headtrack", May: []string{"pkg/chain", "pkg/tier"}},
		// txmanager knows no venue: it is handed what to call, and asks its stages whether to.
		// Of perp it takes the integers that money is counted in.
		{Path: "pkg/txmanager/...", May: slices.Concat(tools, []string{"pkg/chain", "pkg/perp", "pkg/job",
			"pkg/lease/...", "pkg/nonce/...", "pkg/txm/...", "pkg/evm", "pkg/signer", "pkg/headtrack",
			"pkg/agreement", "pkg/ttl"})},
		{Path: "pkg/service/...", May: inner},
		// Snapshots know no SQL, and of their stores only the adapters; backup joins them with the database.
		{Path: "pkg/snapshot", May: inner},
		{Path: "pkg/snapshot/store/...", May: slices.Concat(inner, []string{"pkg/snapshot"})},
		{Path: "pkg/backup", May: slices.Concat(inner, []string{"pkg/snapshot", "pkg/pg"})},
		{Path: "pkg/embedded/..."},

		// scanner cannot see Postgres.
		{Path: "services/scanner/...",
			May: slices.Concat(inner, shell, []string{"pkg/wire", "pkg/bus", "pkg/evm", "pkg/gmx", "pkg/price/..."})},
		// statevm cannot see RPC.
		{Path: "services/statevm/...",
			May: slices.Concat(inner, shell, []string{"pkg/wire", "pkg/bus", "pkg/gmx", "pkg/pg", "pkg/backup",
				"pkg/snapshot/..."})},
		// planner cannot see the chain.
		{Path: "services/planner/...",
			May: slices.Concat(inner, rooms, shell, []string{"pkg/wire", "pkg/bus", "pkg/gmx", "pkg/pg", "pkg/price"})},
		{Path: "services/sender/...", May: slices.Concat(inner, rooms, shell,
			[]string{"pkg/wire", "pkg/bus", "pkg/gmx", "pkg/pg", "pkg/pg/outbox", "pkg/price", "pkg/evm", "pkg/signer",
				"pkg/headtrack", "pkg/evidence", "pkg/txmanager", "services/sender/..."})},
		// turns know the clock and the evidence; no state, no node, no venue.
		{Path: "services/sender/turns", May: slices.Concat(inner, []string{"pkg/tier", "pkg/execution", "pkg/txm",
			"pkg/txmanager", "pkg/headtrack", "pkg/evidence"})},
		// preflight knows the venue, the state and the nodes; neither nonces nor turns.
		{Path: "services/sender/preflight", May: slices.Concat(inner, []string{"pkg/tier", "pkg/txm", "pkg/txmanager",
			"pkg/checklog", "pkg/headtrack", "pkg/liquidation", "pkg/due", "pkg/bus", "pkg/wire", "pkg/gmx", "pkg/pg",
			"pkg/price",
			"pkg/evm"})},
		// what operators see and do, by the command line and by the console alike
		{Path: "pkg/operator/...", May: slices.Concat(inner, rooms, []string{"pkg/wire", "pkg/bus", "pkg/pg",
			"pkg/pg/outbox", "pkg/price", "pkg/evm", "pkg/operator/..."})},
		// the operator's tool asks the chain for balances and nonces; it sends nothing. It makes keystores, and opens
		// them to see that they can be (doctor), which asks the sources of prices as well. It plays keepers, and so
		// carries the other services' code in the simulator.
		{Path: "services/keeperctl/...", May: slices.Concat(inner, rooms, shell,
			[]string{"pkg/wire", "pkg/bus", "pkg/gmx", "pkg/pg", "pkg/pg/outbox", "pkg/price/...", "pkg/evm",
				"pkg/signer",
				"pkg/notify/...", "pkg/audit", "pkg/operator/...", "pkg/backup", "pkg/snapshot/...",
				"services/simulator"})},
		// the operators' process: it has neither keys nor nonces.
		{Path: "services/console/...", May: slices.Concat(inner, rooms, shell,
			[]string{"pkg/wire", "pkg/bus", "pkg/gmx", "pkg/pg", "pkg/pg/outbox", "pkg/price", "pkg/evm",
				"pkg/notify/...",
				"pkg/headtrack", "pkg/evidence", "pkg/operator/...", "services/console/..."})},
		// It is no service: several keepers, played in virtual time with the services' own code. Nothing sees it but
		// the operator's tool and tests.
		{Path: "services/simulator/...", May: slices.Concat(inner, rooms, []string{"pkg/evm", "pkg/gmx/...", "pkg/pg",
			"pkg/price", "pkg/signer", "pkg/headtrack", "pkg/txmanager", "services/planner", "services/sender/..."})},
		{Path: "services/devnet/...", May: slices.Concat(inner, shell)},
		// demo starts the other processes as processes; of the services it imports none.
		{Path: "services/demo/...",
			May: slices.Concat(inner, shell, []string{"pkg/embedded/...", "pkg/wire", "pkg/bus", "pkg/pg", "pkg/evm",
				"pkg/tier", "pkg/gmx",
				"pkg/audit", "pkg/execution/..."})},
		{Path: "test/...", May: []string{"pkg/...", "services/...", "test/..."}},
	},
	Vendors: []vendor{
		{Prefix: "github.com/segmentio/kafka-go", Only: []string{"pkg/bus/..."},
			Why: "only pkg/bus names the Kafka client"},
		{Prefix: "github.com/jackc/pgx", Only: []string{"pkg/pg/...", "test/bench", "test/hammer", "test/e2e"},
			Why: "only pkg/pg names the Postgres driver; benchmarks and audits look past it, and faults are planted"},
		{Prefix: "github.com/minio/minio-go", Only: []string{"pkg/snapshot/store"},
			Why: "only the store of snapshots speaks the S3 API"},
		{Prefix: "github.com/pressly/goose", Only: []string{"pkg/pg/..."}, Why: "only pkg/pg migrates"},
		{Prefix: "database/sql", Only: []string{"pkg/pg/..."}, Why: "only pkg/pg speaks SQL"},
		{Prefix: "github.com/spf13/viper", Only: []string{"pkg/service/..."},
			Why: "only pkg/service reads configuration"},
		{Prefix: "github.com/spf13/pflag", Only: []string{"pkg/service/..."}, Why: "only pkg/service reads flags"},
		{Prefix: "github.com/spf13/cobra", Only: []string{"services/keeperctl/..."},
			Why: "only the operator's tool has commands"},
		{Prefix: "github.com/ethereum/go-ethereum", Only: []string{"pkg/evm/...", "pkg/gmx/...", "pkg/signer/...",
			"services/devnet/...", "test/..."},
			Why: "only the adapters of the chain and the devnet name go-ethereum", Tests: true},
		{Prefix: "github.com/twmb/franz-go", Only: []string{"pkg/embedded/broker", "pkg/bus/...", "test/..."},
			Why: "the embedded broker is no client"},
		{Prefix: "github.com/fergusstrange/embedded-postgres", Only: []string{"pkg/embedded/postgres"},
			Why: "only the embedded Postgres downloads one"},
		{Prefix: "github.com/compose-spec/compose-go", Only: []string{"test/compose"},
			Why: "only the test of the compose file reads compose files"},
		{Prefix: "github.com/stretchr/testify", Only: nil, Why: "tests use the standard library"},
	},
}
