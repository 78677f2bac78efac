// Planner finds what has to be executed: liquidatable positions, due orders, waiting requests.
package main

import (
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/service"
	"perpkeeper/services/planner"

	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	service.Main("planner", planner.DefaultConfig(), planner.Start,
		service.About("planner finds liquidatable positions, due orders and waiting requests, and publishes them as "+
			"jobs."),
		service.Metrics(func(reg prometheus.Registerer) { bus.NewMetrics(reg) }, planner.RegisterMetrics))
}
