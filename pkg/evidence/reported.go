package evidence

import (
	"maps"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
)

// reportedSet is which executions were reported, for whoever reads their records again. The end of a job on another
// branch is another execution. What lies deeper under the newest than anything is taken back counts as reported: a
// topic that was made anew would tell all of history once more, after what came later.
type reportedSet struct {
	newest, floor uint64 // block numbers: of the newest execution, and below which all count as reported
	known         map[place]struct{}
}

// place is where an execution stands.
type place struct {
	number uint64
	block  chain.Hash
	log    uint32
}

func newReportedSet() *reportedSet { return &reportedSet{known: map[place]struct{}{}} }

// add returns those of the executions that were not reported yet, in their order, and counts them as reported.
func (s *reportedSet) add(found []execution.Execution) (fresh []execution.Execution) {
	for _, e := range found {
		at := place{e.Block.Number, e.Block.Hash, e.Pos.Index}
		if _, known := s.known[at]; known || at.number < s.floor {
			continue
		}
		s.known[at], s.newest = struct{}{}, max(s.newest, at.number)
		fresh = append(fresh, e)
	}
	s.forget()
	return fresh
}

// forget drops what nothing takes back any more, a quarter of the horizon at once.
func (s *reportedSet) forget() {
	floor := s.newest - min(s.newest, chain.UndoHorizon)
	if floor < s.floor+chain.UndoHorizon/4 {
		return
	}
	s.floor = floor
	maps.DeleteFunc(s.known, func(at place, _ struct{}) bool { return at.number < floor })
}
