package keeperctl

// repairing are the commands that change what a keeper does.
func repairing() []command {
	return []command{
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
				{use: "nonces [SIGNER]", short: "compare cursors with the chain's, and show balances", data: true},
				{use: "gaps [SIGNER]", short: "list the numbers that no transaction has", data: true},
				{use: "resync SIGNER", short: "move a cursor to the chain's number (--keeperctl.yes)"},
				{use: "write-off SIGNER [NONCE] [REASON]", short: "give up one whose key is lost (--keeperctl.yes)"},
				{use: "cancel SIGNER NONCE [REASON]", short: "call a transaction off (--keeperctl.yes)"},
			},
		},
		{
			use: "lease", short: "end the lease of a sender that is gone and does not give it back", group: groupRepair,
			needs:   []string{"postgres", "keeperctl.patience", "keeperctl.operator", "keeperctl.yes"},
			patient: true, run: onDatabase(leases),
			verbs: []command{
				{use: "break SIGNER", short: "show who has a lease, and fence the holder out (--keeperctl.yes)"},
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
	}
}

// rebuilding are the commands that change what a keeper has stored.
func rebuilding() []command {
	return []command{
		{
			use: "generations", short: "list, compare, switch or drop generations of the state", group: groupRepair,
			preset: minute, run: stateGenerations,
			needs: []string{"postgres", "keeperctl.patience", "keeperctl.reason"},
			verbs: []command{
				{use: "list", short: "list the generations and how far they are", data: true},
				{use: "compare A B", short: "compare two of them table by table, in one snapshot", data: true},
				{use: "switch N", short: "have readers use another one"},
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
			use: "snapshot", short: "take, list, verify or restore snapshots of the state", group: groupRepair,
			needs: stores, preset: minute, run: snapshots,
			verbs: []command{
				{use: "create FOLDER", short: "take one of the active generation, with pg_dump"},
				{use: "list FOLDER", short: "list the snapshots and whether this build can restore them", data: true},
				{use: "verify FOLDER [NAME]", short: "read all of one, or of the newest, and count its rows"},
				{use: "restore FOLDER [NAME]", short: "make a generation of one, bring it up to date, and compare it"},
			},
		},
		{
			use:     "emergency",
			short:   "plan, rehearse and record what is done when keepers fail; hand over calls of the venue",
			group:   groupRepair,
			patient: true, needs: with(onChain, "venue", "notify", "emergency", "keeperctl.dry_run",
				"keeperctl.emergency_signer"), run: act,
			verbs: []command{
				{use: "plan", short: "show what is looked at, what may be done and what is called for now", data: true},
				{use: "list", short: "list what was ever done or rehearsed", data: true},
				{use: "run ACTION CAUSE", short: "rehearse an action, or do it (--keeperctl.dry_run=false)"},
				{use: "done RUN ACTION TX", short: "record that what was handed over was sent"},
			},
		},
	}
}
