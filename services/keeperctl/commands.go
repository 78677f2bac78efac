package keeperctl

import (
	"slices"
	"time"
)

// The groups that help lists commands in.
const (
	groupLook   = "look"
	groupRepair = "repair"
	groupSetUp  = "setup"
	groupAbout  = "house"
)

var groups = []struct{ id, title string }{
	{groupLook, "See what is and what was"},
	{groupRepair, "Put right"},
	{groupSetUp, "Set up"},
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
	return slices.Concat(looking(), accounting(), repairing(), rebuilding(), settingUp())
}

// settingUp are the commands that prepare a keeper, and tell of this program.
func settingUp() []command {
	return []command{
		{
			use: "init REGION", short: "write the configuration of a new region",
			group: groupSetUp, setup: initCommand,
		},
		{
			use: "prepare", short: "create missing topics and bring the database's schema up to date",
			group:   groupSetUp,
			patient: true, needs: with(stores, "keeperctl.roles", "keeperctl.replication"),
			preset: func(s *Settings) { s.Patience = 2 * time.Minute }, run: prepare,
		},
		{
			use:   "keystore FOLDER",
			short: "make an encrypted keystore and its password",
			group: groupSetUp, setup: keystoreCommand,
		},
		{
			use: "password", short: "print the hash of a password, for the console", group: groupSetUp,
			run: printHash,
		},
		{use: "topics", short: "print the catalogue of topics as a markdown table", group: groupAbout,
			setup: topicsCommand, data: true},
		{use: "version", short: "say which build this is", group: groupAbout, run: version},
		{use: "reference", short: "print docs/keeperctl.md", group: groupAbout, private: true, run: reference},
	}
}
