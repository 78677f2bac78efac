package keeperctl

// looking are the commands that show what is, and what was decided.
func looking() []command {
	return []command{
		{
			use: "status", short: "show a keeper on one screen, what is wrong first", group: groupLook, data: true,
			run: keeperStatus,
			needs: []string{"keeper", "chain", "kafka", "postgres", "tier", "keeperctl.processes",
				"keeperctl.alertmanager"},
		},
		{
			use: "doctor", short: "look for faults, and say how each is mended",
			group: groupLook, data: true, setup: doctorCommand,
			needs: []string{"keeper", "chain", "venue", "kafka", "postgres", "tier", "notify", "signer", "scanner",
				"planner", "sender", "keeperctl.processes", "keeperctl.patience",
				"keeperctl.alertmanager", "keeperctl.disks"},
		},
		{
			use: "why-not KEY", short: "say why a position, order or request is not executed now", group: groupLook,
			data: true, preset: minute,
			patient: true, run: whyNot,
			needs: with(stores, "liquidation", "chain"),
		},
		{
			use:   "replay",
			short: "repeat the planner's decisions from the topics, and show what differs",
			group: groupLook, data: true, preset: minute, setup: replayCommand,
			patient: true, needs: []string{"keeper", "kafka", "liquidation", "planner", "keeperctl.patience"},
		},
		{
			use:   "job ID|KEY|TX|ACCOUNT",
			short: "tell one job's whole story",
			group: groupLook, data: true, preset: minute, setup: jobCommand,
			patient: true, needs: with(stores, "tier", "keeperctl.limit", "chain"),
		},
		{
			use:   "bugreport FILE [JOB ...]",
			short: "write one file about this keeper and some jobs for whoever looks into a fault, without secrets",
			group: groupLook, preset: minute, run: bugReport,
			needs: []string{"keeper", "chain", "venue", "kafka", "postgres", "tier", "notify", "signer", "scanner",
				"planner", "sender", "liquidation", "keeperctl.processes", "keeperctl.patience",
				"keeperctl.alertmanager", "keeperctl.disks", "keeperctl.limit", "keeperctl.reason"},
		},
		{
			use:   "audit FROM TO | last DURATION",
			short: "say who executed which jobs, how late and at what gas, by the chain alone",
			group: groupLook, data: true, run: auditChain,
			needs: []string{"keeper", "chain", "venue", "tier"},
		},
	}
}

// accounting are the commands that show what was recorded, and what it cost.
func accounting() []command {
	return []command{
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
			use: "wallet", short: "show what agents have earned, and prove it", group: groupLook, needs: inLedger,
			run: onDatabase(wallets),
			verbs: []command{
				{use: "verify", short: "list the wallets, in wei, and prove that they are the sums of their entries",
					data: true},
			},
		},
		{
			use:   "pnl [day|week|DAYSd]",
			short: "say what signers earned and spent in final blocks",
			group: groupLook, data: true, preset: minute, setup: pnlCommand,
			patient: true, needs: []string{"keeper", "chain", "postgres", "keeperctl.patience"},
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
			short: "ask a process whether it is ready",
			group: groupLook, setup: healthCommand,
		},
	}
}
