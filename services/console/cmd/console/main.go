// Console is the operators' process.
package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/service"
	"perpkeeper/services/console"
)

func main() {
	service.Main("console", console.DefaultConfig(), console.Start,
		service.About("console is the operators' process: it tells people what a keeper does, beside its road."),
		service.Metrics(console.RegisterMetrics,
			func(reg prometheus.Registerer) { bus.NewMetrics(reg) },
			func(reg prometheus.Registerer) { evm.NewMetrics(reg) }))
}
