// Scanner copies the exchange's events, and price reports, to Kafka.
package main

import (
	"perpkeeper/pkg/service"
	"perpkeeper/services/scanner"
)

func main() {
	service.Main("scanner", scanner.DefaultConfig(), scanner.Start,
		service.About("scanner follows the chain and copies the exchange's logs to Kafka, in order and reorgs "+
			"included, and price reports beside them."),
		service.Metrics(scanner.RegisterMetrics))
}
