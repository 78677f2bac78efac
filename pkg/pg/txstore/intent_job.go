package txstore

import (
	"encoding/json"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
)

// jobDocument is a job as column job of tx_intent holds it. Its names are the column's, whatever the fields of the
// vocabulary are called. Texts are escaped.
type jobDocument struct {
	ID           string           `json:"id"`
	Kind         job.Kind         `json:"kind"`
	Key          chain.Hash       `json:"key"`
	Account      chain.Address    `json:"account"`
	Market       chain.Address    `json:"market"`
	Collateral   chain.Address    `json:"collateral"`
	IsLong       bool             `json:"isLong"`
	SizeDeltaUsd chain.Uint       `json:"sizeDeltaUsd"`
	Tokens       []chain.Address  `json:"tokens"`
	DueSinceMs   uint64           `json:"dueSinceMs"`
	ExpiresMs    uint64           `json:"expiresMs"`
	Class        job.Class        `json:"class"`
	Ratio        chain.Uint       `json:"ratio"`
	Frozen       bool             `json:"frozen"`
	Evidence     evidenceDocument `json:"evidence"`
	Signer       chain.Address    `json:"signer"`
}

type evidenceDocument struct {
	Block      uint64     `json:"block"`
	Hash       chain.Hash `json:"hash"`
	Parent     chain.Hash `json:"parent"`
	TimeMs     uint64     `json:"timeMs"`
	Generation uint32     `json:"generation"`
	Reports    []string   `json:"reports"`
	Reason     string     `json:"reason"`
}

func encodeJob(j job.Job) ([]byte, error) {
	e := j.Evidence
	d := jobDocument{
		ID: pg.Escape(j.ID), Kind: j.Kind, Key: j.Key, Account: j.Account, Market: j.Market, Collateral: j.Collateral,
		IsLong: j.IsLong, SizeDeltaUsd: j.SizeDeltaUsd,
		Tokens: j.Tokens, DueSinceMs: j.DueSinceMs, ExpiresMs: j.ExpiresMs, Class: j.Class, Ratio: j.Ratio,
		Frozen: j.Frozen,
		Signer: j.Signer,
		Evidence: evidenceDocument{
			Block: e.Block.Number, Hash: e.Block.Hash, Parent: e.Block.Parent, TimeMs: e.Block.TimeMs,
			Generation: e.Generation, Reason: pg.Escape(e.Reason),
		},
	}
	for _, r := range e.Reports {
		d.Evidence.Reports = append(d.Evidence.Reports, pg.Escape(r))
	}
	return json.Marshal(d)
}

func decodeJob(text []byte) (j job.Job, err error) {
	var d jobDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return j, err
	}
	e := d.Evidence
	j = job.Job{
		Kind: d.Kind, Key: d.Key, Account: d.Account, Market: d.Market, Collateral: d.Collateral, IsLong: d.IsLong,
		SizeDeltaUsd: d.SizeDeltaUsd, Tokens: d.Tokens,
		DueSinceMs: d.DueSinceMs, ExpiresMs: d.ExpiresMs, Class: d.Class, Ratio: d.Ratio,
		Frozen: d.Frozen, Signer: d.Signer,
		Evidence: job.Evidence{
			Block:      chain.BlockRef{Number: e.Block, Hash: e.Hash, Parent: e.Parent, TimeMs: e.TimeMs},
			Generation: e.Generation, Reports: make([]string, len(e.Reports)),
		},
	}
	if len(e.Reports) == 0 {
		j.Evidence.Reports = nil
	}
	texts := map[*string]string{&j.ID: d.ID, &j.Evidence.Reason: e.Reason}
	for i, r := range e.Reports {
		texts[&j.Evidence.Reports[i]] = r
	}
	for into, stored := range texts {
		if *into, err = pg.Unescape(stored); err != nil {
			return j, fmt.Errorf("job %s: %w", d.ID, err)
		}
	}
	return j, nil
}
