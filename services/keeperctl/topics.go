package keeperctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/kafka/wire"
)

// topicsCommand prints docs/topics.md's table, so that the document cannot differ from the code.
func topicsCommand(*cobra.Command) runner {
	return func(_ context.Context, s *session, _ []string) error {
		rows := topicTable()
		return s.out.either(rows.records(), markdown(rows))
	}
}

func topicTable() *table {
	const anyChain = 0
	c := wire.DefaultConfig()
	rows := newTable("topic", "key", "partitions", "kept", "writer", "readers")
	for _, t := range wire.Topics(anyChain, c.LogPartitions, c.JobPartitions) {
		kept := "for ever, never compacted"
		if t.Retention > 0 {
			kept = fmt.Sprintf("%d d", t.Retention/(24*time.Hour))
		}
		rows.add(strings.Replace(t.Name, fmt.Sprint(anyChain), "<chain>", 1), t.Key, t.Partitions, kept, t.Writer,
			t.Readers)
	}
	return rows
}

// markdown writes a table as documents have it, the first column as code.
func markdown(t *table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.heads, " | "), strings.Repeat("---|", len(t.heads)))
	for _, cells := range t.rows {
		fmt.Fprintf(&b, "| `%s`", cells[0])
		for _, c := range cells[1:] {
			fmt.Fprintf(&b, " | %v", c)
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\nEvery topic has (`runbooks/topic-settings.md`) at least `kafka.max_bytes` as " +
		"`max.message.bytes`, all copies but one as `min.insync.replicas`")
	settings := wire.Topic{}.Settings()
	delete(settings, "retention.ms")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, ", `%s=%s`", name, settings[name])
	}
	b.WriteString(".\n")
	return b.String()
}
