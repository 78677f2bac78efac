//go:build !race

package simulator

// underRace says that the race detector watches: a play then takes ten times as long.
const underRace = false
