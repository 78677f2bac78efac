package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/demo"
)

// shadowReport is what keeperctl shadow report says.
type shadowReport struct {
	Scores []struct {
		Kind                                                   string
		Before, SameBlock, After, NeverFound, WronglyDue, Open int
		WouldHaveReverted                                      int
		Fees                                                   string
	}
	Distances []struct {
		Blocks     string
		Executions int
	}
	Faults []struct{ Fault, Kind, Job, Reason string }
}

// total is the last line of the scores.
func (r shadowReport) found() int {
	total := r.Scores[len(r.Scores)-1]
	return total.Before + total.SameBlock + total.After
}

func (k *keeper) shadowReport(ctx context.Context, grace time.Duration) (r shadowReport, err error) {
	said, failed := k.Shadow.Keeperctl(ctx, "shadow", "report", "--grace", grace.String(), "--output", "json")
	at := strings.Index(said, "{\n") // warnings may stand before it, and the verdict after
	if at < 0 {
		return r, fmt.Errorf("%w: %s", failed, said)
	}
	err = json.NewDecoder(strings.NewReader(said[at:])).Decode(&r)
	if err == nil && len(r.Scores) == 0 {
		err = fmt.Errorf("no scores: %s", said)
	}
	return r, err
}

// beside is a stack of the demo's three keepers and a shadow, whose own settings may be wrong.
func beside(t *testing.T, planted map[string]string) *keeper {
	t.Helper()
	k := startAdapted(t, func(s *demo.Settings) {
		s.Keepers, s.Shadow, s.BlockTime, s.Rate = 3, true, 450*time.Millisecond, 2
	}, func(s *demo.Stack) { s.Shadow.Also = planted })
	k.await("the shadow ready", k.Shadow.Ready)
	return k
}

// A shadow beside the demo's three keepers finds all that they execute, and nothing else.
func TestShadow(t *testing.T) {
	long(t)
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("KEEPER_LONG is not set: it watches for two minutes")
	}
	k := beside(t, nil)
	watched := time.NewTimer(2 * time.Minute)
	defer watched.Stop()
	select {
	case <-watched.C:
	case err := <-k.Failed():
		t.Fatal(err)
	}
	r, err := k.shadowReport(t.Context(), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 || r.found() < 50 || r.Scores[len(r.Scores)-1].Fees == "0" {
		t.Errorf("%+v", r)
	}
	t.Logf("%+v", r)
}

// What is wrong with a keeper shows in its score before it has a key: one that believes positions to be liquidated
// long before the venue does insists on what reverts.
func TestShadowOfASkewedKeeper(t *testing.T) {
	long(t)
	k := beside(t, map[string]string{"LIQUIDATION_FIRE_RATIO": "2"})
	k.awaitWronglyDue()
}

// awaitWronglyDue waits until the shadow's score shows liquidations that are not due on the chain.
func (k *keeper) awaitWronglyDue() {
	k.t.Helper()
	k.await("jobs that are wrongly due", func(ctx context.Context) error {
		r, err := k.shadowReport(ctx, time.Minute)
		if err != nil {
			return err
		}
		for _, s := range r.Scores {
			if s.Kind == "liquidation" && s.WronglyDue > 0 && s.WouldHaveReverted >= s.WronglyDue {
				k.t.Logf("%+v", s)
				return nil
			}
		}
		return fmt.Errorf("%+v", r)
	})
}
