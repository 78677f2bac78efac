package evidence

import (
	"maps"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier/execution"
)

// reportedSet is which executions were reported, for whoever reads their records again. The end of a job on another
// branch is another execution. What lies deeper under the newest than anything is taken back counts as reported: a
// topic that was made anew would tell all of history once more, after what came later.
type reportedSet struct {
	newest, floor uint64 // block numbers: of the newest execution, and below which all count as reported
	known         map[execution.Identity]struct{}
}

func newReportedSet() *reportedSet { return &reportedSet{known: map[execution.Identity]struct{}{}} }

// add returns those of the executions that were not reported yet, in their order, and counts them as reported.
func (s *reportedSet) add(found []execution.Execution) (fresh []execution.Execution) {
	for _, e := range found {
		id := e.Identity()
		if _, known := s.known[id]; known || id.Pos.Block < s.floor {
			continue
		}
		s.known[id], s.newest = struct{}{}, max(s.newest, id.Pos.Block)
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
	maps.DeleteFunc(s.known, func(id execution.Identity, _ struct{}) bool { return id.Pos.Block < floor })
}
