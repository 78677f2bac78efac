//go:build !race

package sim

// underRace says that the race detector watches: a play then takes ten times as long.
const underRace = false
