package outbox

import (
	"encoding/json"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
)

// encodeSettlement writes a settlement as column settlement of tx_receipt holds it: a document with the names of its
// JSON form, its texts escaped; NULL where there is none.
func encodeSettlement(s *job.Settlement) (*string, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // most transactions settle nothing, which is no error
	}
	stored := *s
	stored.BadDebtStep = pg.Escape(s.BadDebtStep)
	text, err := json.Marshal(stored)
	return new(string(text)), err
}

func decodeSettlement(text []byte) (*job.Settlement, error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // most transactions settle nothing, which is no error
	}
	s := new(job.Settlement)
	err := json.Unmarshal(text, s)
	if err == nil {
		s.BadDebtStep, err = pg.Unescape(s.BadDebtStep)
	}
	return s, err
}
