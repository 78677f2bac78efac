package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

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

// No user takes what all have together: pages of others stay live.
func TestNobodyTakesAllLivePages(t *testing.T) {
	s := newSite(t)
	vera, anna := s.as("vera"), s.as("anna")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := func(b *browser, path string) int {
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		s.must(err)
		answer, err := b.Client.Do(ask)
		s.must(err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.StatusCode
	}
	opened := 0
	for stream(vera, fmt.Sprint("/live?page=/&id=", opened)) == http.StatusOK {
		opened++
	}
	if opened != 16 {
		t.Errorf("one user has %d streams", opened)
	}
	if status := stream(anna, "/live?page=/signers"); status != http.StatusOK {
		t.Errorf("another one's page is not live: %d", status)
	}
}
