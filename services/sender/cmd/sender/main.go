// Sender turns jobs into transactions.
package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/service"
	"perpkeeper/services/sender"
)

func main() {
	service.Main("sender", sender.DefaultConfig(), sender.Start,
		service.About("sender turns jobs into transactions: checked again, with fenced nonces, followed until they "+
			"are final."),
		service.Metrics(sender.RegisterMetrics,
			func(reg prometheus.Registerer) { bus.NewMetrics(reg) },
			func(reg prometheus.Registerer) { evm.NewMetrics(reg) }))
}
