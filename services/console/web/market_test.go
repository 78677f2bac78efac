package web_test

import (
	"net/http"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// A report that nobody can judge with, here one of price zero, is passed over: it breaks neither the page nor, where
// somebody looks at it for longer, the process.
func TestUnusableReportsArePassedOver(t *testing.T) {
	s := newSite(t)
	s.records(wire.PriceTopic(s.deps.Keeper.ChainID), 1)
	status, page := s.as("vera").get("/market")
	if status != http.StatusOK || strings.Contains(page, "cannot be read") {
		t.Errorf("%d\n%s", status, page)
	}
}

// records gives a topic that many records in partition 0, which nobody reads.
func (s *site) records(topic string, n int) {
	s.t.Helper()
	for range n {
		r, err := wire.Encode([]byte("key"), wire.Price{Token: chain.Address{1}}, 0, 0)
		s.must(err)
		_, err = s.client.Producer(topic).Produce(s.t.Context(), 0, []wire.Record{r})
		s.must(err)
	}
}
