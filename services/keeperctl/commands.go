package keeperctl

import "time"

// The groups that help lists commands in.
const (
	groupLook    = "look"
	groupRepair  = "repair"
	groupSetUp   = "setup"
	groupOffline = "offline"
	groupAbout   = "house"
)

var groups = []struct{ id, title string }{
	{groupLook, "See what is and what was"},
	{groupRepair, "Put right"},
	{groupSetUp, "Set up"},
	{groupOffline, "Try and prove, without a keeper"},
	{groupAbout, "About this program"},
}

// What several commands need: who asks and for how long, the stores, and the chain.
var (
	stores   = []string{"keeper", "kafka", "postgres", "keeperctl.patience"}
	onChain  = []string{"keeper", "chain", "postgres", "keeperctl.limit", "keeperctl.patience", "keeperctl.operator"}
	inLedger = []string{"postgres", "keeperctl.limit", "keeperctl.patience"}
)

func with(needs []string, more ...string) []string {
	return append(append([]string(nil), needs...), more...)
}

func minute(s *Settings) { s.Patience = time.Minute }

// commands is every command there is.
func commands() []command {
	return []command{
		{
			use: "status", short: "show a keeper on one screen, what is wrong first", group: groupLook, data: true,
			setup: statusCommand,
			needs: []string{"keeper", "chain", "kafka", "postgres", "tier", "keeperctl.processes",
				"keeperctl.alertmanager"},
		},
		{
			use: "doctor", short: "look for faults, and say how each is mended: configuration, endpoints, contracts, " +
				"keys, prices, stores",
			group: groupLook, data: true, setup: doctorCommand,
			needs: []string{"keeper", "chain", "venue", "kafka", "postgres", "tier", "notify", "signer", "scanner",
				"planner", "sender", "keeperctl.signers", "keeperctl.processes", "keeperctl.patience",
				"keeperctl.alertmanager", "keeperctl.disks"},
		},
		{
			use: "why-not KEY", short: "say why a position, order or request is not executed now", group: groupLook,
			data: true, preset: minute,
			patient: true, run: whyNot,
			needs: with(stores, "liquidation", "keeperctl.frozen_role", "keeperctl.price_max_age"),
		},
		{
			use:   "replay",
			short: "repeat the planner's decisions of a past moment from the topics, and show what differs",
			group: groupLook, data: true, preset: minute, setup: replayCommand,
			patient: true, needs: []string{"keeper", "kafka", "venue", "liquidation", "planner", "keeperctl.patience"},
		},
		{
			use:   "job ID|KEY|TX|ACCOUNT",
			short: "tell one job's whole story: births, attempts, nonces, transactions, results, and what others did",
			group: groupLook, data: true, preset: minute, setup: jobCommand,
			patient: true, needs: with(stores, "tier", "keeperctl.signers", "keeperctl.limit"),
		},
		{
			use: "audit FROM TO | last DURATION",
			short: "say who executed which jobs, by the chain alone: ages, duplicates, gas won and lost, what " +
				"sharing saved",
			group: groupLook, data: true, run: auditChain,
			needs: []string{
				"keeper", "chain", "venue", "tier",
				"keeperctl.signers", "keeperctl.json", "keeperctl.workers", "keeperctl.lead", "keeperctl.loss_ratio",
			},
		},
		{
			use: "topic", short: "print the records of a topic: log, price, job, result or dlq", group: groupLook,
			run:   noVerb,
			needs: []string{"keeper", "kafka", "keeperctl.patience"},
			verbs: []command{
				{use: "cat TOPIC", short: "print the records that there are, a line each", data: true,
					setup: topicCommand(false)},
				{use: "tail TOPIC", short: "print the records that come, until it is interrupted", data: true,
					setup: topicCommand(true)},
			},
		},
		{
			use: "liquidations", short: "list the positions that are being liquidated, or could not be",
			group: groupLook, needs: []string{"postgres"},
			setup: liquidationsCommand, data: true,
		},
		{
			use: "wallet", short: "list and verify what agents have earned", group: groupLook, needs: inLedger,
			run: onDatabase(wallets),
			verbs: []command{
				{use: "list", short: "list the wallets, in wei", data: true},
				{use: "ledger AGENT", short: "list the entries of a wallet, newest first", data: true},
				{use: "verify", short: "prove that balances are the sums of their entries", data: true},
			},
		},
		{
			use:   "pnl [day|week|DAYSd]",
			short: "say what signers earned and spent in final blocks, and hold it against their balances",
			group: groupLook, data: true, preset: minute, setup: pnlCommand,
			patient: true, needs: []string{"keeper", "chain", "postgres", "keeperctl.patience"},
		},
		{
			use: "archive", short: "show what has ended: what is at hand, the weeks of the archive, and those that " +
				"were dropped",
			group: groupLook, data: true, needs: []string{"postgres", "keeperctl.patience"}, preset: minute,
			run: onDatabase(archive),
		},
		{
			use: "shadow", short: "score a keeper without keys (sender.mode = shadow)", group: groupLook, run: noVerb,
			patient: true, needs: []string{"postgres", "keeperctl.patience"}, preset: minute,
			verbs: []command{
				{use: "report", short: "hold what it would have sent against what real keepers did", data: true,
					setup: shadowReportCommand},
			},
		},
		{
			use:   "health",
			short: "ask a process whether it is ready; ask Kafka or Postgres (health kafka, health postgres)",
			group: groupLook, setup: healthCommand,
			verbs: []command{
				{use: kafkaPart, short: "ask every broker", needs: []string{"kafka", "keeperctl.wait"},
					run: kafkaHealth},
				{use: postgresPart, short: "ask the database, and whether this build can work with it",
					needs: []string{"postgres", "keeperctl.wait"}, run: postgresHealth},
			},
		},
		{
			use: "signer",
			short: "list, pause, resume or resync signers, call a transaction off; hold balances and nonces against " +
				"the chain",
			group: groupRepair, needs: with(onChain, "keeperctl.yes"), preset: func(s *Settings) { s.Limit = 1000 },
			patient: true, run: signers,
			verbs: []command{
				{use: "list", short: "say who has the lease, who is paused and why, and how much waits", data: true},
				{use: "pause SIGNER REASON", short: "have a signer claim nothing new"},
				{use: "resume SIGNER", short: "lift a pause"},
				{use: "balance [SIGNER]", short: "show what there is to pay gas with", data: true},
				{use: "nonces [SIGNER]", short: "hold the database's cursors against the chain's numbers", data: true},
				{use: "gaps [SIGNER]", short: "list the numbers that no transaction has", data: true},
				{use: "resync SIGNER", short: "move a cursor to the chain's number (--keeperctl.yes)"},
				{use: "cancel SIGNER NONCE [REASON]", short: "call a transaction off (--keeperctl.yes)"},
			},
		},
		{
			use: "lease", short: "end the lease of a sender that is gone and does not give it back", group: groupRepair,
			needs: []string{"postgres", "keeperctl.patience", "keeperctl.operator"}, run: noVerb,
			verbs: []command{
				{use: "break SIGNER", short: "show who has a signer's lease, ask, and fence the holder out",
					setup: leaseBreakCommand},
			},
		},
		{
			use: "delayed", short: "run, list, show, retry or cancel delayed jobs", group: groupRepair, needs: inLedger,
			run: onDatabase(delayedJobs),
			verbs: []command{
				{use: "run", short: "have the planners scan now", data: true},
				{use: "list [pending|done|parked] [KIND]", short: "list delayed jobs", data: true},
				{use: "show ID", short: "print a delayed job as JSON"},
				{use: "retry ID", short: "have a parked job done again"},
				{use: "cancel ID", short: "call a job off"},
			},
		},
		{
			use: "dlq", short: "list and show dead letters; have jobs that were given up said again",
			group: groupRepair, patient: true, needs: with(stores, "keeperctl.limit"), run: dlq,
			verbs: []command{
				{use: "list [SOURCE]", short: "list dead letters, newest first", data: true},
				{use: "show OFFSET", short: "print a dead letter as JSON"},
				{use: "replay OFFSET|SOURCE", short: "publish a job again, or the newest letter of each job"},
			},
		},
		{
			use: "generations", short: "list, compare, switch or drop generations of the state", group: groupRepair,
			preset: minute, run: stateGenerations,
			needs: []string{"postgres", "keeperctl.patience", "keeperctl.reason"},
			verbs: []command{
				{use: "list", short: "list the generations and how far they are", data: true},
				{use: "compare A B", short: "compare two of them table by table, in one snapshot", data: true},
				{use: "switch N|back", short: "have readers use another one"},
				{use: "drop N", short: "give one up for good"},
			},
		},
		{
			use:   "rebuild",
			short: "fill a new generation of the state from the log topic, beside the live one, and compare",
			group: groupRepair,
			needs: stores, preset: minute, run: rebuild,
		},
		{
			use: "partitions", short: "raise the number of partitions of a keeper's topics", group: groupRepair,
			needs: stores, preset: minute, run: noVerb,
			verbs: []command{
				{use: "raise", short: "do what can be done now towards the numbers of the configuration, and say " +
					"what is next", run: raisePartitions},
			},
		},
		{
			use: "snapshot", short: "take, list, verify or restore snapshots of the state", group: groupRepair,
			needs: with(stores, "snapshot"), preset: minute, run: snapshots,
			verbs: []command{
				{use: "create", short: "take one of the active generation, and remove all but the newest"},
				{use: "list", short: "list the snapshots and whether this build can restore them", data: true},
				{use: "verify NAME|latest", short: "read all of one and say whether it is what was written"},
				{use: "restore NAME|latest", short: "make a generation of one, bring it up to date, and compare it"},
			},
		},
		{
			use:     "emergency",
			short:   "plan, rehearse and record what is done when keepers fail; hand over calls of the venue",
			group:   groupRepair,
			patient: true, needs: with(onChain, "venue", "notify", "emergency", "keeperctl.dry_run",
				"keeperctl.emergency_signer", "planner.signers"), run: act,
			verbs: []command{
				{use: "plan", short: "show what is looked at, what may be done and what is called for now", data: true},
				{use: "list", short: "list what was ever done or rehearsed", data: true},
				{use: "run ACTION CAUSE", short: "rehearse an action, or do it (--keeperctl.dry_run=false)"},
				{use: "done RUN ACTION TX", short: "record that what was handed over was sent"},
			},
		},
		{
			use: "prepare", short: "create missing topics and bring the database's schema up to date",
			group:   groupSetUp,
			patient: true, needs: with(stores, "snapshot", "keeperctl.roles", "keeperctl.replication"),
			preset: func(s *Settings) { s.Patience = 2 * time.Minute }, run: prepare,
		},
		{
			use:   "keystore FOLDER",
			short: "make an encrypted keystore and its password for a signer, of a new key or a given one",
			group: groupSetUp, setup: keystoreCommand,
		},
		{
			use:   "addresses [DATASTORE|ROUTER]",
			short: "find the exchange's contracts from one of them, or in a deployments file, as lines of an env file",
			needs: []string{"keeper", "chain", "keeperctl.deployments", "keeperctl.patience"},
			group: groupSetUp, patient: true, preset: minute, data: true, run: addresses,
		},
		{
			use:   "fold LOGS",
			short: "fold a recording of event logs and print the state it leaves, or the verdicts on cases",
			group: groupOffline, setup: foldCommand,
		},
		{use: "gas CASES", short: "print the gas limits of executions under given words of the exchange",
			group: groupOffline, setup: gasCommand},
		{
			use:   "simulate SCENARIO",
			short: "play keepers through a scenario in simulated time, and say whether it comes out as expected",
			group: groupOffline,
			setup: simulateCommand,
		},
		{use: "events", short: "list the contract events that are handled and those known and ignored",
			group: groupAbout, setup: eventsCommand, data: true},
		{use: "topics", short: "print the catalogue of topics as a markdown table", group: groupAbout,
			setup: topicsCommand, data: true},
		{use: "version", short: "say which build this is", group: groupAbout, run: version},
		{use: "reference", short: "print docs/keeperctl.md", group: groupAbout, private: true, run: reference},
	}
}
