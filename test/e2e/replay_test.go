package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"perpkeeper/lab/demo"
)

// PIPE-9: what the planner decided is decided again, word for word, from the topics alone.
func TestReplay(t *testing.T) {
	long(t)
	want, rate := 30, 4
	if os.Getenv("KEEPER_LONG") != "" {
		want, rate = 1000, 30
	}
	k := start(t, func(s *demo.Settings) { s.Rate = rate })
	k.progress(want/5, 1)
	type replayed struct {
		Same, Differs, NotRepeated int
		Decisions                  []map[string]any
	}
	var got replayed
	k.await(fmt.Sprintf("%d decisions repeated", want), func(ctx context.Context) error {
		said, err := k.Keeperctl(ctx, "replay", "--at", "1", "--until", "1000000", "--output", "json")
		at := strings.Index(said, "{\n") // warnings may stand before it
		if at < 0 {
			return fmt.Errorf("%w: %s", err, said)
		}
		got = replayed{}
		if err := json.NewDecoder(strings.NewReader(said[at:])).Decode(&got); err != nil {
			return err
		}
		if got.Same < want && got.Differs == 0 {
			return fmt.Errorf("%d the same, %d not repeated", got.Same, got.NotRepeated)
		}
		return nil
	})
	t.Logf("%d decisions the same, %d differ, %d not repeated", got.Same, got.Differs, got.NotRepeated)
	if got.Differs > 0 || got.NotRepeated > 0 {
		t.Errorf("%v", got.Decisions[:min(10, len(got.Decisions))])
	}
}
