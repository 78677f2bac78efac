package txm

import "perpkeeper/pkg/job"

// Lane is a class of transactions that are paid for alike.
type Lane string

// The lanes, the most urgent first.
const (
	LiquidationLane Lane = "liquidation" // liquidations and deleveragings: the venue loses money while they wait
	OrderLane       Lane = "order"       // orders: a user waits
	MaintenanceLane Lane = "maintenance" // requests, and what only keeps the nonces going
)

// Lanes lists every lane, the most urgent first.
func Lanes() []Lane { return []Lane{LiquidationLane, OrderLane, MaintenanceLane} }

// LaneOf returns the lane of a kind of job.
func LaneOf(k job.Kind) Lane {
	switch k {
	case job.Liquidation, job.Adl, job.AdlState:
		return LiquidationLane
	case job.Order:
		return OrderLane
	default:
		return MaintenanceLane
	}
}
