package gmx

import (
	"os"
	"path/filepath"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
)

// benchmarked returns transactions of the trading recording, or of one sample of each event where it is absent, and the number of their logs.
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

// BenchmarkDecodeLog compares reading a log's data: our index of its items, our reading of every item into a map, and go-ethereum's.
func BenchmarkDecodeLog(b *testing.B) {
	txs, _ := benchmarked(b)
	var logs []chain.Log
	for _, tx := range txs {
		logs = append(logs, tx.logs...)
	}
	for name, decode := range map[string]func([]byte) error{
		"index": func() func([]byte) error {
			items := make([]item, 0, usualItems)
			return func(data []byte) error { _, err := indexItems(data, items); return err }
		}(),
		"every-item":  func(data []byte) error { _, err := eventItems(data); return err },
		"go-ethereum": func(data []byte) error { _, err := referenceArguments.Unpack(data); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := decode(logs[i%len(logs)].Data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransactions decodes and routes whole transactions; µs/log is what a log costs the state machine and the scanner.
func BenchmarkTransactions(b *testing.B) {
	txs, logs := benchmarked(b)
	decoder, router := NewDecoder(txs[0].logs[0].Address), NewRouter(txs[0].logs[0].Address, 1<<16)
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
