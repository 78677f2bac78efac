// Statevm applies the log topic to the keeper's database.
package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/service"
	"perpkeeper/services/statevm"
)

func main() {
	service.Main("statevm", statevm.DefaultConfig(), statevm.Start,
		service.About("statevm turns the log topic into rows of positions, orders and markets, exactly once, and "+
			"undoes reorgs."),
		service.Borrows("venue"),
		service.Metrics(func(reg prometheus.Registerer) { bus.NewMetrics(reg) }, statevm.RegisterMetrics))
}
