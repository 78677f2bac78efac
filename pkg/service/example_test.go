package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
)

// KafkaSettings is a part that an adapter would own. Its keys are relative; the shell completes them to kafka.brokers.
type KafkaSettings struct {
	Brokers  []string      `toml:"brokers" help:"addresses of the brokers to ask first"`
	Password secret.String `toml:"password" help:"SASL password; empty means none"`
}

func (s KafkaSettings) Validate() error {
	if len(s.Brokers) == 0 {
		return errors.New("brokers: empty (name at least one, such as 127.0.0.1:9092)")
	}
	return nil
}

// ScannerSettings is the service's own section.
type ScannerSettings struct {
	RPC   []secret.URL  `toml:"rpc" help:"endpoints of the chain, the preferred one first"`
	Poll  time.Duration `toml:"poll" help:"how often to ask for a new head"`
	Param []Param       `toml:"param" help:"values that no event carries"`
}

func (s ScannerSettings) Validate() error {
	var problems []error
	if len(s.RPC) == 0 {
		problems = append(problems, errors.New("rpc: empty (name at least one endpoint)"))
	}
	if s.Poll <= 0 {
		problems = append(problems, fmt.Errorf("poll: %s is not positive (write a duration such as 500ms)", s.Poll))
	}
	return errors.Join(problems...)
}

// Param is one [[scanner.param]] table.
type Param struct {
	Key  string `toml:"key" help:"name of the value"`
	Slot uint64 `toml:"slot" help:"where it is stored"`
}

// ScannerConfig is the whole configuration of the process.
type ScannerConfig struct {
	Kafka   KafkaSettings   `toml:"kafka"`
	Scanner ScannerSettings `toml:"scanner"`
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c ScannerConfig) Validate() error { return nil }

func DefaultScannerConfig() ScannerConfig {
	return ScannerConfig{
		Kafka:   KafkaSettings{Brokers: []string{"127.0.0.1:9092"}},
		Scanner: ScannerSettings{Poll: 500 * time.Millisecond},
	}
}

// scanner is the service itself: it knows nothing of the shell.
type scanner struct {
	poll  time.Duration
	heads prometheus.Counter
	head  *service.Condition
	log   zerolog.Logger
}

func registerMetrics(reg prometheus.Registerer) { newHeads(reg) }

func newHeads(reg prometheus.Registerer) prometheus.Counter {
	heads := prometheus.NewCounter(prometheus.CounterOpts{Name: "perpkeeper_scanner_heads_total",
		Help: "New heads seen."})
	reg.MustRegister(heads)
	return heads
}

func (s *scanner) run(ctx context.Context) error {
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.heads.Inc()
			s.head.OK()
		}
	}
}

// startScanner acquires what the service needs and hands its loop to the shell.
func startScanner(sh *service.Shell, cfg ScannerConfig) error {
	sh.OnStop("kafka", func(context.Context) error { return nil }) // The line after connecting.
	s := &scanner{poll: cfg.Scanner.Poll, heads: newHeads(sh.Registry), head: sh.Ready("head"), log: sh.Log}
	sh.Handle("GET /status",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "scanning") }))
	sh.Go("scan", s.run)
	return nil
}

func ExampleMain() {
	service.Main("scanner", DefaultScannerConfig(), startScanner, service.About("scanner copies the chain's logs to "+
		"Kafka."), service.Metrics(registerMetrics))
}
