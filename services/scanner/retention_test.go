package scanner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"perpkeeper/pkg/kafka/wire"
)

// A log topic that has dropped its beginning is gone on with, also where it now begins inside of an epoch; one that has
// dropped everything is refused, as nothing says any more where its readers stand.
func TestTopicThatDroppedItsBeginning(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	topic := wire.LogTopic(1337)
	s := start(t, testConfig(d, k.Addr()), k)
	d.trade(3)
	settle(t, k, tr)
	_ = s.stop()
	ends := func() (ends []int64) {
		t.Helper()
		for p := range partitions {
			_, end, err := k.client.Bounds(t.Context(), topic, p)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		return ends
	}
	drop := func(left int64) {
		t.Helper()
		for p, end := range ends() {
			if err := k.DeleteRecords(topic, p, end-left); err != nil {
				t.Fatal(err)
			}
		}
	}
	drop(2)
	const blocks = 3
	before := ends()
	s = start(t, testConfig(d, k.Addr()), k)
	d.mine(blocks)
	eventually(t, "a claim and the end of each block stand in every partition", func() error {
		for p, end := range ends() {
			if end < before[p]+1+blocks {
				return errNotYet
			}
		}
		return nil
	})
	if err := s.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the scanner ended with %v", err)
	}

	drop(0)
	s = start(t, testConfig(d, k.Addr()), k)
	if err := s.wait(); err == nil || !strings.Contains(err.Error(), "has dropped all its records") {
		t.Errorf("the scanner ended with %v", err)
	}
}
