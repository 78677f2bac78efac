package hammer

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	parts "perpkeeper/test/rig"
)

// settled returns what the database has not ended or reported yet, for await.
func (s *site) settled(context.Context) (missing string) {
	var live, unreported int
	s.ask(
		`SELECT count(*) FILTER (WHERE ended_at IS NULL), count(*) FILTER (WHERE reported_at IS NULL)
			FROM keeper.tx_intent`, nil, &live, &unreported)
	if live == 0 && unreported == 0 {
		return ""
	}
	return fmt.Sprintf("%d intents have not ended, %d are not reported", live, unreported)
}

// allowed is how many of the jobs may be published by now: the last tenth is held back until the signer has changed
// hands, so that a quick run is a hard one too.
func (s *site) allowed(jobs int) int {
	s.t.Helper()
	if !s.handed {
		s.ask(`SELECT coalesce(max(fencing_token), 0) > 1 FROM keeper.signer_lease`, nil, &s.handed)
	}
	if s.handed {
		return jobs
	}
	return jobs - jobs/10
}

// late tells whether the test's time (-timeout) is almost up. What was said by then is finished and audited.
func (s *site) late() bool {
	end, limited := s.t.Deadline()
	return limited && time.Until(end) < 2*patience
}

// ask reads one row.
func (s *site) ask(sql string, args []any, into ...any) {
	s.t.Helper()
	s.connected(func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(into...) })
}

// each reads rows one by one.
func (s *site) each(sql string, args []any, into []any, row func()) {
	s.t.Helper()
	s.connected(func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, into, func() error { row(); return nil })
		return err
	})
}

// connected uses a connection of its own, past every line.
func (s *site) connected(do func(ctx context.Context, c *pgx.Conn) error) {
	s.t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, s.url)
	if err == nil {
		err = do(ctx, c)
		_ = c.Close(ctx)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// audit demands of the chain and of the rows what the package promises, and returns how many lease terms there were.
func (s *site) audit(jobs int) (terms int64) {
	s.t.Helper()
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.wrong[:min(len(n.wrong), 10)] {
		s.t.Error(w)
	}
	if len(n.pool) > 0 {
		s.t.Errorf("%d transactions wait above a gap at nonce %d", len(n.pool), len(n.mined))
	}
	s.auditChain(jobs)
	s.auditAttempts()
	return s.auditRows(jobs)
}

// auditChain counts how often each job was executed.
func (s *site) auditChain(jobs int) {
	s.t.Helper()
	times, empty := make([]int, jobs), 0
	for nonce, m := range s.node.mined {
		switch {
		case m.job == none:
			empty++
		case m.job >= jobs:
			s.t.Errorf("nonce %d executed job %d, which there is not", nonce, m.job)
		default:
			times[m.job]++
		}
	}
	lost, twice := 0, 0
	for _, n := range times {
		if n == 0 {
			lost++
		}
		if n > 1 {
			twice++
		}
	}
	if lost+twice > 0 {
		s.t.Errorf("of %d jobs %d were never executed and %d more than once", jobs, lost, twice)
	}
	if empty > 0 {
		s.t.Logf("%d nonces were spent by payments to oneself", empty)
	}
}

// auditAttempts demands that everything that was ever broadcast is stored, and what was mined is stored with its nonce
// and its job (NON-13).
func (s *site) auditAttempts() {
	s.t.Helper()
	unknown, mined := len(s.node.heard), 0
	var hash, key []byte
	var nonce uint64
	var kind string
	s.each(
		`SELECT a.hash, a.nonce, a.kind, i.key FROM keeper.signed_tx a JOIN keeper.tx_intent i ON i.id = a.intent
			WHERE a.signer = $1`,
		[]any{s.signer[:]}, []any{&hash, &nonce, &kind, &key}, func() {
			h := common.BytesToHash(hash)
			if s.node.heard[h] {
				unknown--
			}
			at, known := s.node.place[h]
			if !known {
				return
			}
			mined++
			id := s.node.mined[at].job
			if at != nonce || kind == "EXEC" && (id == none || !bytes.Equal(key, hashOfMarket(id))) {
				s.t.Errorf("%x is stored as %s of nonce %d, and was mined with nonce %d for job %d", hash, kind, nonce,
					at, id)
			}
		})
	if unknown != 0 {
		s.t.Errorf("%d transactions were broadcast that are not stored", unknown)
	}
	if mined != len(s.node.mined) {
		s.t.Errorf("%d of the %d mined transactions are stored", mined, len(s.node.mined))
	}
}

func hashOfMarket(id int) []byte {
	h := marketOf(id).Hash()
	return h[:]
}

// auditRows demands that numbers have no gap, that each was consumed, and that every job has one attempt with a
// transaction, which was done.
func (s *site) auditRows(jobs int) (terms int64) {
	s.t.Helper()
	var next, rows, last, open, shared uint64
	s.ask(`SELECT next_nonce, fencing_token FROM keeper.signer_lease WHERE signer = $1`, []any{s.signer[:]}, &next,
		&terms)
	s.ask(
		`SELECT count(*), coalesce(max(nonce), 0), count(*) FILTER (WHERE state <> 'CONSUMED'), count(*) -
			count(DISTINCT intent)
		FROM keeper.signer_nonce_allocation WHERE signer = $1`, []any{s.signer[:]}, &rows, &last, &open, &shared)
	mined := uint64(len(s.node.mined))
	if next != mined || rows != mined || last+1 != mined || open != 0 || shared != 0 {
		s.t.Errorf("%d nonces were mined; the next one is %d, %d are stored up to %d, %d of them not consumed, %d "+
			"for an intent that has another one",
			mined, next, rows, last, open, shared)
	}
	var known, done, other int
	s.ask(`SELECT count(DISTINCT job_id), count(*) FILTER (WHERE state = 'FINAL_OK' AND outcome = $1),
		count(*) FILTER (WHERE nonce IS NOT NULL AND NOT (state = 'FINAL_OK' AND outcome = $1)) FROM keeper.tx_intent
			WHERE kind <> 'fill'`,
		[]any{string(job.Done)}, &known, &done, &other)
	if known != jobs || done != jobs || other != 0 {
		s.t.Errorf("%d jobs are stored, %d attempts are done, %d others had a transaction; want %d, %d and 0", known,
			done, other, jobs, jobs)
	}
	return terms
}

// auditResults demands that every job's end was published, and never two different ones.
func (s *site) auditResults(jobs int) {
	s.t.Helper()
	ends := map[string]job.Result{}
	for partition := range s.keeper.JobPartitions {
		for _, record := range parts.Records(s.t, s.client, wire.ResultTopic(s.keeper.ChainID), partition) {
			m, _, err := wire.Decode(record)
			if err != nil {
				s.t.Fatal(err)
			}
			r := m.(wire.Result).Result
			if before, known := ends[r.JobID]; known && before != r {
				s.t.Errorf("published as %+v and as %+v", before, r)
			}
			ends[r.JobID] = r
		}
	}
	if len(ends) != jobs {
		s.t.Errorf("%d of %d ends were published", len(ends), jobs)
	}
}
