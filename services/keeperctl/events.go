package keeperctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/gmx"
)

// eventsCommand prints one event a line: whether it is handled or ignored, and its name.
func eventsCommand(*cobra.Command) runner {
	return func(_ context.Context, s *session, _ []string) error {
		var b strings.Builder
		rows := newTable("event", "handled")
		for _, name := range gmx.HandledEvents() {
			fmt.Fprintf(&b, "handled  %s\n", name)
			rows.add(name, true)
		}
		for _, name := range gmx.IgnoredEvents() {
			fmt.Fprintf(&b, "ignored  %s\n", name)
			rows.add(name, false)
		}
		return s.out.either(rows.records(), b.String())
	}
}
