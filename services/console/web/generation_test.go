package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// rendering is a generation that a test writes in place of statevm.
type rendering struct {
	*pg.Partition

	next int64
	tip  chain.BlockRef
}

func (s *site) rendering(generation int) *rendering {
	s.t.Helper()
	part, err := s.db.Claim(s.t.Context(), pg.ClaimRequest{Generation: generation, Partitions: 1})
	s.must(err)
	return &rendering{Partition: part, tip: chain.BlockRef{Number: 6, Hash: chain.Hash{6}}}
}

// grow adds a block with a position to a generation.
func (s *site) grow(r *rendering, position int) {
	s.t.Helper()
	r.next++
	r.tip = chain.BlockRef{Number: r.tip.Number + 1, Hash: chain.Hash{byte(r.tip.Number + 1)}, Parent: r.tip.Hash,
		TimeMs: 1_800_000_000_000 + 1000*r.tip.Number}
	s.must(r.Commit(s.t.Context(), pg.Commit{Next: r.next, Blocks: []pg.AppliedBlock{{BlockRef: r.tip,
		Changes: []pg.Change{{After: somePosition(position)}}}}}))
}

// awaitRecorded waits until so many entries stand in the record.
func (s *site) awaitRecorded(n int) []pg.ConsoleAction {
	s.t.Helper()
	waiting, cancel := context.WithTimeout(s.t.Context(), 90*time.Second) // guards against a hang
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if all := s.recorded(); len(all) >= n {
			return all
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			s.t.Fatalf("%d entries never come: %+v", n, s.recorded())
		}
	}
}

func (s *site) active() int {
	s.t.Helper()
	number, err := s.db.ActiveGeneration(s.t.Context())
	s.must(err)
	return number
}

// A state is rebuilt, compared, switched to and left again, each with its entry (PIPE-8).
func TestGenerationsAreSteered(t *testing.T) {
	s := newSite(t)
	anna := s.as("anna")
	one := s.rendering(1)
	s.grow(one, 1)
	topic := wire.LogTopic(s.deps.Keeper.ChainID)
	s.records(topic, 4)

	if status, page := anna.do("generation-rebuild", "", ""); status != http.StatusOK ||
		!strings.Contains(page, "0 of 4 records") {
		t.Fatalf("rebuilt: %d\n%s", status, page)
	}
	if status, page := anna.do("generation-rebuild", "", ""); status != http.StatusConflict ||
		!strings.Contains(page, "generation 2 is being filled already") {
		t.Errorf("rebuilt twice: %d\n%s", status, page)
	}
	two := s.rendering(2)
	if status, _ := anna.do("generation-compare", "2", ""); status != http.StatusOK {
		t.Errorf("compared: %d", status)
	}
	if status, page := anna.do("generation-compare", "2", ""); status != http.StatusConflict ||
		!strings.Contains(page, "still under way") {
		t.Errorf("compared twice at a time: %d\n%s", status, page)
	}
	s.grow(two, 1) // now both stand at the same place
	all := s.awaitRecorded(4)
	if all[1].After["being filled"] != "generation 2" || all[3].Stage != pg.ActionDone ||
		all[3].After["compared"] != "equal to generation 1 at block 7" {
		t.Errorf("the record: %+v", all)
	}
	anna.awaitPage("/generations", "equal to generation 1 at block 7")

	if status, _ := anna.do("generation-switch", "2", "tested"); status != http.StatusOK {
		t.Errorf("switched: %d", status)
	}
	if all = s.awaitRecorded(6); s.active() != 2 || all[5].Before["readers use"] != "generation 1" ||
		all[5].After["readers use"] != "generation 2" || all[5].Reason != "tested" {
		t.Errorf("generation %d is read: %+v", s.active(), all[4:])
	}

	s.grow(one, 2)
	s.grow(two, 3)
	anna.do("generation-switch", "1", "for the looks of it")
	if all = s.awaitRecorded(8); s.active() != 2 || all[7].Stage != pg.ActionFailed ||
		!strings.Contains(all[7].Outcome, "generation 1 differs from generation 2") {
		t.Errorf("what differs is switched to: generation %d, %+v", s.active(), all[6:])
	}
	anna.awaitPage("/generations", "failed after")
	anna.do("generation-compare", "1", "")
	if all = s.awaitRecorded(10); !strings.HasPrefix(all[9].After["compared"], "DIFFERENT from generation 2") {
		t.Errorf("compared: %+v", all[9])
	}
	if _, page := anna.get("/generations"); !strings.Contains(page, "do=generation-back&amp;target=1") {
		t.Errorf("the way back is not offered:\n%s", page)
	}
	if _, page := anna.get("/act?do=generation-back&target=1"); strings.Count(page, `class="wrap">8<`) != 2 {
		t.Errorf("it is not said where both stand:\n%s", page)
	}
	if status, page := anna.do("generation-back", "1", "the new one is wrong"); status != http.StatusOK ||
		s.active() != 1 {
		t.Errorf("the way back: %d, generation %d\n%s", status, s.active(), page)
	}
	if all = s.awaitRecorded(12); all[11].After["readers use"] != "generation 1" {
		t.Errorf("the record: %+v", all[11])
	}
	// Asked for again, by a second click or by somebody else who saw the same page, it does not lead forth again.
	if status, page := anna.do("generation-back", "1", "the new one is wrong"); status != http.StatusConflict ||
		s.active() != 1 || !strings.Contains(page, "that is generation 2 now") {
		t.Errorf("back twice: %d, generation %d\n%s", status, s.active(), page)
	}
}

// The way back leads to a generation that is kept up to date: readers are not sent far back just like that.
func TestTheWayBackIsShort(t *testing.T) {
	s := newSite(t)
	anna := s.as("anna")
	s.grow(s.rendering(1), 1)
	_, err := s.db.AddGeneration(t.Context(), nil)
	s.must(err)
	two := s.rendering(2)
	s.grow(two, 1)
	s.must(s.db.Switch(t.Context(), 2, ""))
	for range 101 { // nobody keeps generation 1
		s.grow(two, 2)
	}
	const says = "generation 1 stands at block 7, 101 blocks back"
	if status, page := anna.get("/act?do=generation-back&target=1"); status != http.StatusConflict ||
		!strings.Contains(page, says) {
		t.Errorf("asked for: %d\n%s", status, page)
	}
	if status, page := anna.do("generation-back", "1", "x"); status != http.StatusConflict || s.active() != 2 {
		t.Errorf("done: %d, generation %d\n%s", status, s.active(), page)
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

// Who may not steer generations does not, and what makes no sense is refused before it is written down.
func TestGenerationsAreGuarded(t *testing.T) {
	s := newSite(t)
	s.grow(s.rendering(1), 1)
	otto, anna := s.as("otto"), s.as("anna")
	for _, action := range []string{"generation-rebuild", "generation-switch", "generation-back"} {
		if status, _ := otto.do(action, "1", "x"); status != http.StatusForbidden {
			t.Errorf("an operator does %s: %d", action, status)
		}
		if _, page := otto.get("/generations"); strings.Contains(page, action) {
			t.Errorf("an operator is offered %s", action)
		}
	}
	for _, c := range []struct{ action, target, says string }{
		{"generation-switch", "1", "generation 1 is the one that readers use"},
		{"generation-compare", "1", "generation 1 is the one that readers use"},
		{"generation-switch", "7", "generation 7 does not exist"},
		{"generation-compare", "new", "is no generation"},
		{"generation-back", "2", "no other generation to go back to"},
		{"generation-back", "", "is no generation"},
	} {
		if status, page := anna.do(c.action, c.target, "x"); status != http.StatusConflict ||
			!strings.Contains(page, c.says) {
			t.Errorf("%+v: %d\n%s", c, status, page)
		}
	}
	forged := url.Values{"do": {"generation-rebuild"}, "csrf": {"forged"}}
	for _, path := range []string{"/act", "/doctor"} {
		if status, _ := anna.post("/act?do=generation-rebuild", path, forged); status != http.StatusForbidden {
			t.Errorf("a forged form to %s: %d", path, status)
		}
	}
	if all := s.recorded(); len(all) != 0 {
		t.Errorf("something was done: %s", fmt.Sprint(all))
	}
}

// A generation of a log topic of another number of partitions stands still: another one can be filled.
func TestGenerationOfOtherPartitionsIsNotBeingFilled(t *testing.T) {
	s := newSite(t)
	number, err := s.db.AddGeneration(t.Context(), nil)
	s.must(err)
	_, err = s.db.Claim(t.Context(), pg.ClaimRequest{Generation: number,
		Partitions: s.deps.Keeper.LogPartitions + 1})
	s.must(err)
	if _, page := s.as("anna").get("/generations"); !strings.Contains(page, "generation-rebuild") {
		t.Errorf("no other one can be filled:\n%s", page)
	}
}
