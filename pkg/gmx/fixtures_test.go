package gmx

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// recordedTx is one transaction of a recording.
type recordedTx struct {
	logs   []chain.Log
	timeMs uint64
}

// recordings names the recordings of the original contracts, which are not part of this repository. GMX_FIXTURES overrides where to look.
func recordings(t testing.TB) []string {
	dir := os.Getenv("GMX_FIXTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "fixtures", "gmx")
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(names) == 0 {
		t.Skipf("no recordings in %s; set GMX_FIXTURES to their directory", dir)
	}
	return names
}

func readRecording(t testing.TB, name string) (txs []recordedTx) {
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
		log := chain.Log{Address: l.Address, Topics: l.Topics, Data: l.Data, Block: l.BlockNumber, TxHash: l.TxHash, Index: l.LogIndex}
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

// documented is one event as the contracts' interface documents it.
type documented struct {
	name   string
	topics []string
	items  map[string]string // name → type
}

// documentedEvents reads testdata/events.txt: a line per event, "Name topics:a,b type:item,item type:item".
func documentedEvents(t testing.TB) (events []documented) {
	text, err := os.ReadFile("testdata/events.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		e := documented{name: words[0], items: map[string]string{}}
		for _, w := range words[1:] {
			kind, names, _ := strings.Cut(w, ":")
			for name := range strings.SplitSeq(names, ",") {
				if kind == "topics" && name != "" {
					e.topics = append(e.topics, name)
				} else if kind != "topics" {
					e.items[name] = kind
				}
			}
		}
		events = append(events, e)
	}
	return events
}

var sampleAccount, sampleMarket, sampleCollateral = chain.Address{0xac}, chain.Address{0x3a}, chain.Address{0xc0}

// sample makes the items of a documented event, each of its documented type.
func (e documented) sample() perp.Fields {
	items := perp.Fields{}
	for name, kind := range e.items {
		seed := chain.Keccak256([]byte(name))
		switch kind {
		case "address":
			items[name] = seed.Address()
		case "address[]":
			items[name] = []chain.Address{seed.Address()}
		case "uint256":
			items[name] = perp.UintFromBytes(seed[:8])
		case "int256":
			items[name] = perp.UintFromBytes(seed[:8]).Int().Neg()
		case "bool":
			items[name] = true
		case "bytes32":
			items[name] = seed
		case "bytes32[]":
			items[name] = []chain.Hash{seed}
		case "bytes":
			items[name] = perp.Bytes(seed[:5])
		case "string":
			items[name] = "some " + name
		}
	}
	coherent := perp.Fields{
		"account": sampleAccount, "market": sampleMarket, "collateralToken": sampleCollateral, "orderType": perp.U64(2),
		"positionKey": perp.PositionKey(sampleAccount, sampleMarket, sampleCollateral, true),
	}
	for name, value := range coherent {
		if _, has := items[name]; has {
			items[name] = value
		}
	}
	return items
}

// sampleTopics are the words of the topics, taken from the items of the same name.
func (e documented) sampleTopics(items perp.Fields) []chain.Hash {
	topics := []chain.Hash{}
	for _, name := range e.topics {
		word := chain.Keccak256([]byte(name))
		switch v := items[name].(type) {
		case chain.Address:
			word = v.Hash()
		case chain.Hash:
			word = v
		case perp.Uint:
			word = v.Bytes32()
		case nil:
			if name == "market" {
				word = sampleMarket.Hash()
			}
		}
		topics = append(topics, word)
	}
	return topics
}
