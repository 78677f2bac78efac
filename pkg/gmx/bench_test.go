package gmx

import (
	"os"
	"path/filepath"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
)

// benchmarked returns transactions of the trading recording, or of one sample of each event where it is absent, and the
// number of their logs.
func benchmarked(b *testing.B) (txs []recordedTx, logs int) {
	b.Helper()
	if name := filepath.Join(fixtureDir(), "trading-and-liquidation.jsonl.gz"); exists(name) {
		txs = readRecording(b, name)
	} else {
		for _, e := range gmxtest.Events() {
			txs = append(txs, recordedTx{logs: whole(e.Log(emitter, nil)), timeMs: 1})
		}
	}
	for _, tx := range txs {
		logs += len(tx.logs)
	}
	return txs, logs
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// BenchmarkDecodeLog compares what a log costs: go-ethereum's reading of its data, our index of its items, our reading
// of every item into a map, and the whole of our decoding, from the log to the event of pkg/perp. "times" is how often
// that goes into go-ethereum's reading, in this run.
func BenchmarkDecodeLog(b *testing.B) {
	txs, _ := benchmarked(b)
	var logs []chain.Log
	for _, tx := range txs {
		logs = append(logs, tx.logs...)
	}
	decoder, r := NewDecoder(logs[0].Address), reader{}
	items := make([]item, 0, usualItems)
	var reference float64
	for _, way := range []struct {
		name   string
		decode func(*chain.Log) error
	}{
		{"go-ethereum", func(l *chain.Log) error { _, err := referenceArguments.Unpack(l.Data); return err }},
		{"index", func(l *chain.Log) error { _, err := indexItems(l.Data, items); return err }},
		{"every-item", func(l *chain.Log) error { _, err := eventItems(l.Data); return err }},
		{"decode", func(l *chain.Log) error { r.joins = joins{}; return decoder.log(&r, l, 1) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := way.decode(&logs[i%len(logs)]); err != nil {
					b.Fatal(err)
				}
			}
			cost := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if way.name == "go-ethereum" {
				reference = cost
			}
			b.ReportMetric(reference/cost, "times")
		})
	}
}

// BenchmarkTransactions decodes and routes whole transactions; µs/log is what a log costs the state machine and the
// scanner.
func BenchmarkTransactions(b *testing.B) {
	txs, logs := benchmarked(b)
	decoder, router := NewDecoder(txs[0].logs[0].Address), NewRouter(1<<16)
	for name, handle := range map[string]func(recordedTx) error{
		"decode": func(tx recordedTx) error { _, err := decoder.Transaction(tx.logs, tx.timeMs); return err },
		"route":  func(tx recordedTx) error { _, err := router.Route(tx.logs); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, tx := range txs {
					if err := handle(tx); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(logs), "µs/log")
		})
	}
}
