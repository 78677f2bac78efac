package txm

import "perpkeeper/pkg/job"

// Lane is a class of transactions that are paid for alike.
type Lane = job.Lane

// The lanes, the most urgent first.
const (
	LiquidationLane = job.LiquidationLane
	OrderLane       = job.OrderLane
	MaintenanceLane = job.MaintenanceLane
)

// Lanes lists every lane, the most urgent first.
func Lanes() []Lane { return []Lane{LiquidationLane, OrderLane, MaintenanceLane} }

// LaneOf returns the lane of a kind of job. What only spends a number, and what is in flight of a kind that this build
// does not know, is maintenance: it is seen through, and nothing new is sent for it.
func LaneOf(k job.Kind) Lane {
	if d, known := job.Describe(k); known {
		return d.Lane
	}
	return MaintenanceLane
}
