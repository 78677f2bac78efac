package scanner

import (
	"encoding/json"
	"net/http"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// report is the status page.
type report struct {
	// State is what holds the scanner up; "following the head" if nothing does.
	State     string               `json:"state"`
	Epoch     uint64               `json:"epoch"`
	Tip       blockReport          `json:"tip"`       // the newest block this process has published
	Finalized blockReport          `json:"finalized"` // the newest block two hosts call final
	Head      blockReport          `json:"head"`
	LagBlocks uint64               `json:"lag_blocks"`
	Endpoints []evm.EndpointStatus `json:"endpoints"`
}

type blockReport struct {
	Number uint64     `json:"number"`
	Hash   chain.Hash `json:"hash"`
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
	r.Endpoints = s.chain.Endpoints()
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
