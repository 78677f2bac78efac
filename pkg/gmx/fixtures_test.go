package gmx

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// recordedTx is one transaction of a recording.
type recordedTx struct {
	logs   []chain.Log
	timeMs uint64
}

// recordings names our own invented recording and those of the original contracts, which are not part of this
// repository. GMX_FIXTURES overrides where to look for them.
func recordings(t testing.TB) []string {
	dir := fixtureDir()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(names) == 0 {
		t.Logf("no recordings in %s; set GMX_FIXTURES to their directory", dir)
	}
	return append(names, filepath.Join("..", "..", "lab", "recordings", "testdata", "story.jsonl.gz"))
}

func fixtureDir() string {
	if dir := os.Getenv("GMX_FIXTURES"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "fixtures", "gmx")
}

// recorded keeps what readRecording read: several tests read each recording, and none changes it.
var recorded sync.Map

func readRecording(t testing.TB, name string) (txs []recordedTx) {
	if known, ok := recorded.Load(name); ok {
		return known.([]recordedTx)
	}
	defer func() { recorded.Store(name, txs) }()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			BlockNumber, Timestamp uint64
			TxHash                 chain.Hash
			LogIndex               uint32
			Address                chain.Address
			Topics                 []chain.Hash
			Data                   perp.Bytes
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		log := chain.Log{Address: l.Address, Topics: l.Topics, Data: l.Data, Block: l.BlockNumber, TxHash: l.TxHash,
			Index: l.LogIndex}
		if n := len(txs); n == 0 || txs[n-1].logs[0].TxHash != l.TxHash {
			txs = append(txs, recordedTx{timeMs: l.Timestamp * 1000})
		}
		last := &txs[len(txs)-1]
		last.logs = append(last.logs, log)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return txs
}
