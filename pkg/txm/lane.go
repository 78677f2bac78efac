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
func Lanes() []Lane { return job.Lanes() }

// LaneOf returns the lane of a kind of job, see [job.Kind.Lane].
func LaneOf(k job.Kind) Lane { return k.Lane() }
