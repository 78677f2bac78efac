package config

import "slices"

// sections are all top-level sections there are in a keeper's configuration: first the processes, then what several
// processes share. A process accepts a section of this list that it has no use for, because its file and environment
// are those of the whole keeper; it refuses any section that is not in the list. A new section is therefore added here.
var sections = []string{
	"scanner", "statevm", "planner", "sender", "keeperctl", "console", "devnet", "demo",
	"log", "http",
	"keeper", "chain", "venue", "kafka", "postgres", "signer",
	"tier", "liquidation", "delayed", "commission", "notify", "emergency",
	"retention",
}

func isSection(name string) bool { return slices.Contains(sections, name) }
