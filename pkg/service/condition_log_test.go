package service

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// lines are the reasons that were logged, "-" for a condition that holds.
func lines(log *bytes.Buffer) (all []string) {
	for line := range strings.Lines(log.String()) {
		reason := "-"
		if _, after, is := strings.Cut(line, `"reason":"`); is {
			reason, _, _ = strings.Cut(after, `"`)
		}
		all = append(all, reason)
	}
	return all
}

// A condition that counts, or comes and goes, fills no log; something new is said at once; and the last line is true in
// the end.
func TestConditionsAreLoggedWithoutChatter(t *testing.T) {
	for name, c := range map[string]struct {
		reasons []string // one each second
		want    string
	}{
		"what counts now and then, and where it stops": {counting(50), "block 0,block 30,block 49"},
		"something new at once": {[]string{"no node", "", "no broker", ""},
			"no node,-,no broker,-"},
		"what comes and goes":         {[]string{"busy", "", "busy", "", "busy", ""}, "busy,-"},
		"what came back and stays":    {[]string{"busy", "", "busy"}, "busy,-,busy"},
		"what nobody has said it was": {[]string{"starting", ""}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				condition := Condition{name: "x", log: &conditionLog{log: zerolog.New(&log), name: "x",
					logged: "starting"}, reason: "starting"}
				for _, reason := range c.reasons {
					condition.set(reason)
					time.Sleep(999 * time.Millisecond) // never at the same time as a repetition
				}
				time.Sleep(2 * repeatAfter)
				synctest.Wait()
				if got := strings.Join(lines(&log), ","); got != c.want {
					t.Errorf("logged %s, want %s", got, c.want)
				}
			})
		})
	}
}

func counting(n int) (reasons []string) {
	for i := range n {
		reasons = append(reasons, fmt.Sprintf("block %d", i))
	}
	return reasons
}
