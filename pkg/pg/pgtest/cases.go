package pgtest

import (
	"flag"
	"strconv"
	"testing"
)

// Cases bounds how many cases rapid tries of a property until the test ends, unless the command line says it
// (-rapid.checks): for properties each case of which asks the database a hundred times. make properties tries more.
// Tests that run side by side have the bound alike.
func Cases(tb testing.TB, most int) {
	tb.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := flag.Lookup("rapid.checks").Value // the flag itself stays one that was not given
	before := checks.String()
	set := func(value string) {
		if err := checks.Set(value); err != nil {
			tb.Error(err)
		}
	}
	set(strconv.Itoa(most))
	tb.Cleanup(func() { set(before) })
}
