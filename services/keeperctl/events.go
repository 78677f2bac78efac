package keeperctl

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"perpkeeper/pkg/gmx"
)

// eventsCommand prints one event a line: whether it is handled or ignored, and its name.
func eventsCommand(*flag.FlagSet) func(context.Context, IO) error {
	return func(_ context.Context, std IO) error {
		var b strings.Builder
		for _, name := range gmx.HandledEvents() {
			fmt.Fprintf(&b, "handled  %s\n", name)
		}
		for _, name := range gmx.IgnoredEvents() {
			fmt.Fprintf(&b, "ignored  %s\n", name)
		}
		_, err := fmt.Fprint(std.Out, b.String())
		return err
	}
}
