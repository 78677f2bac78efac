package bench

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/jackc/pgx/v5"
)

// blocksFaster makes a chain of eleven blocks a second.
const blocksFaster = 5

// The whole road with eleven blocks a second and a reorg of three blocks each minute: from the time in a block's header
// until every partition has committed it. KEEPER_HEAD says for how long, on a clock. No process may grow by a fifth in
// its second half.
func TestHeadToRow(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("KEEPER_HEAD"))
	if err != nil {
		t.Skip("takes as long as KEEPER_HEAD says, as 10m")
	}
	s := startSoak(t, soakPlan{length: blocksFaster * length, speed: blocksFaster, load: 1})
	node, err := rpc.DialContext(t.Context(), s.Devnet.RPC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	if _, err := s.db.Exec(t.Context(), "LISTEN state_changed"); err != nil {
		t.Fatal(err)
	}
	h := heads{db: s.db, seen: map[string]bool{}}
	half := map[string]float64{}
	for began, forked := time.Now(), time.Now(); time.Since(began) < length; {
		if err := h.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(half) == 0 && time.Since(began) > length/2 {
			half = s.memory(t)
		}
		if time.Since(forked) > time.Minute {
			forked = time.Now()
			if err := node.CallContext(t.Context(), nil, "devnet_reorg", map[string]any{"depth": 3}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(h.took)
	at := func(share float64) time.Duration { return h.took[int(share*float64(len(h.took)-1))] }
	t.Logf("%d blocks at every partition, head to row: p50 %s, p99 %s, at most %s", len(h.took), at(.5), at(.99), at(1))
	if most := 60 * time.Millisecond; at(.99) > most {
		t.Errorf("p99 is %s, want %s", at(.99), most)
	}
	for name, now := range s.memory(t) {
		t.Logf("%s: %.0f MB at half time, %.0f MB at the end", name, half[name]/1e6, now/1e6)
		if now > 1.2*half[name] {
			t.Errorf("%s grows", name)
		}
	}
}

// memory is what each process has resident, bytes.
func (s *soak) memory(t *testing.T) map[string]float64 {
	t.Helper()
	resident := map[string]float64{}
	for _, p := range s.Keepers[0].Processes {
		resident[p.Name] = p.Metrics(t.Context())["process_resident_memory_bytes"]
	}
	return resident
}

// heads measures how late blocks come to the last of the partitions.
type heads struct {
	db   *pgx.Conn
	seen map[string]bool // by hash
	took []time.Duration
}

// wait takes in the blocks that a commit has made whole.
func (h *heads) wait(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := h.db.WaitForNotification(patient); err != nil {
		return errors.Join(errors.New("no partition commits anything"), err)
	}
	rows, err := h.db.Query(ctx, `SELECT k.hash, extract(epoch FROM clock_timestamp()) * 1000 - k.time_ms
		FROM state_g1.kept_block k WHERE k.block > (SELECT max(block) - 20 FROM state_g1.kept_block)
		GROUP BY k.hash, k.time_ms HAVING count(*) = (SELECT count(*) FROM state_g1.stream_offset)`)
	if err != nil {
		return err
	}
	var hash []byte
	var ms float64
	first := len(h.seen) == 0
	_, err = pgx.ForEachRow(rows, []any{&hash, &ms}, func() error {
		if !h.seen[string(hash)] && !first {
			h.took = append(h.took, time.Duration(ms*float64(time.Millisecond)))
		}
		h.seen[string(hash)] = true
		return nil
	})
	return err
}
