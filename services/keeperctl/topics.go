package keeperctl

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/wire"
)

// topicsCommand prints docs/topics.md's table, so that the document cannot differ from the code.
func topicsCommand(*flag.FlagSet) func(context.Context, IO) error {
	return func(_ context.Context, std IO) error {
		_, err := fmt.Fprint(std.Out, topicTable())
		return err
	}
}

func topicTable() string {
	const anyChain = 0
	c := wire.DefaultConfig()
	var b strings.Builder
	b.WriteString("| topic | key | partitions | kept | writer | readers |\n|---|---|---|---|---|---|\n")
	for _, t := range wire.Topics(anyChain, c.LogPartitions, c.JobPartitions) {
		kept := "for ever, never compacted"
		if t.Retention > 0 {
			kept = fmt.Sprintf("%d d", t.Retention/(24*time.Hour))
		}
		name := strings.Replace(t.Name, fmt.Sprint(anyChain), "<chain>", 1)
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s | %s |\n", name, t.Key, t.Partitions, kept, t.Writer, t.Readers)
	}
	b.WriteString("\nSettings that `keeperctl prepare` gives to every topic and each process asks for when it starts (`runbooks/topic-settings.md`), beside how long it is " +
		"kept:\nat least `kafka.max_bytes` as `max.message.bytes`, all copies but one as `min.insync.replicas`")
	settings := wire.Topic{}.Settings()
	delete(settings, "retention.ms")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, ", `%s=%s`", name, settings[name])
	}
	b.WriteString(".\n")
	return b.String()
}
