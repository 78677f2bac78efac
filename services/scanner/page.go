package scanner

import (
	"encoding/json"
	"net/http"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// report is the status page.
type report struct {
	// State is what holds the scanner up; "following the head" if nothing does.
	State     string           `json:"state"`
	Epoch     uint64           `json:"epoch"`
	Tip       blockReport      `json:"tip"`       // the newest block this process has published
	Finalized blockReport      `json:"finalized"` // the newest block two hosts call final
	Head      blockReport      `json:"head"`
	LagBlocks uint64           `json:"lag_blocks"`
	Backfill  *backfillReport  `json:"backfill,omitempty"`
	OneWord   string           `json:"one_word,omitempty"` // why nobody's word can be compared with another's
	Endpoints []endpointReport `json:"endpoints"`
}

type blockReport struct {
	Number uint64     `json:"number"`
	Hash   chain.Hash `json:"hash"`
}

type endpointReport struct {
	Endpoint  evm.Source        `json:"endpoint"`
	Private   bool              `json:"private,omitempty"`
	Head      uint64            `json:"head"`
	BehindMs  int64             `json:"behind_ms"`
	LatencyMs float64           `json:"latency_ms"`
	Failures  float64           `json:"failure_share"`
	LastError string            `json:"last_error,omitempty"`
	Excluded  []exclusionReport `json:"excluded,omitempty"`
}

type exclusionReport struct {
	From   evm.Purpose `json:"from"`
	Reason evm.Reason  `json:"reason"`
	Detail string      `json:"detail"`
	Since  time.Time   `json:"since"`
	Until  *time.Time  `json:"until,omitempty"` // absent while it lasts until its cause is gone
}

// page serves what the scanner is at, as JSON.
func (s *Scanner) page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(s.report()) // The client may have gone; nothing is lost with it.
	})
}

func (s *Scanner) report() report {
	r := s.status.report()
	r.Backfill, r.OneWord = s.progress.current(), s.chain.OneWord()
	for _, e := range s.chain.Endpoints() {
		r.Endpoints = append(r.Endpoints, reportEndpoint(e))
	}
	return r
}

func (s *status) report() report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := report{State: s.busy, Epoch: s.epoch, Tip: reportBlock(s.tip), Finalized: reportBlock(s.finalized),
		Head: reportBlock(s.head)}
	if r.State == "" {
		r.State = "following the head"
	}
	r.LagBlocks = s.head.Number - min(s.head.Number, s.tip.Number)
	return r
}

func reportBlock(b chain.BlockRef) blockReport { return blockReport{b.Number, b.Hash} }

func reportEndpoint(e evm.EndpointStatus) endpointReport {
	r := endpointReport{
		Endpoint: e.Source, Private: e.Private, Head: e.Head.Number, BehindMs: e.Behind.Milliseconds(),
		LatencyMs: e.LatencyMs, Failures: e.FailureShare,
	}
	if e.LastError != nil {
		r.LastError = e.LastError.Error()
	}
	for _, x := range e.Excluded {
		out := exclusionReport{From: x.Purpose, Reason: x.Reason, Detail: x.Detail, Since: x.Since}
		if !x.Until.IsZero() {
			out.Until = &x.Until
		}
		r.Excluded = append(r.Excluded, out)
	}
	return r
}
