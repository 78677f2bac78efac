package recordings

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// maxLine bounds one line of a recording. The largest event of the contracts is a few kilobytes.
const maxLine = 64 << 20

// recording reads event logs, one JSON object a line, in the chain's order.
type recording struct {
	scanner *bufio.Scanner
	line    int
	pending *recordedLog // read ahead: the first log of the next transaction
	last    *recordedLog
}

// recordedLog is one line. Pointers tell what is absent.
type recordedLog struct {
	BlockNumber *uint64        `json:"blockNumber"`
	BlockHash   *chain.Hash    `json:"blockHash"`
	Timestamp   *uint64        `json:"timestamp"` // Unix seconds
	TxHash      *chain.Hash    `json:"txHash"`
	TxIndex     *uint32        `json:"txIndex"`
	LogIndex    *uint32        `json:"logIndex"`
	Address     *chain.Address `json:"address"`
	Topics      []chain.Hash   `json:"topics"`
	Data        *perp.Bytes    `json:"data"`
}

func (l *recordedLog) check() error {
	if l.BlockNumber == nil || l.BlockHash == nil || l.Timestamp == nil || l.TxHash == nil || l.TxIndex == nil ||
		l.LogIndex == nil ||
		l.Address == nil || l.Topics == nil || l.Data == nil {
		return errors.New("want blockNumber, blockHash, timestamp, txHash, txIndex, logIndex, address, topics and data")
	}
	return nil
}

func (l *recordedLog) log() chain.Log {
	return chain.Log{
		Address: *l.Address, Topics: l.Topics, Data: *l.Data, Block: *l.BlockNumber, BlockHash: *l.BlockHash,
		TxHash:  *l.TxHash,
		TxIndex: *l.TxIndex, Index: *l.LogIndex,
	}
}

// follows demands the chain's order, and that a block has one hash and one time and a transaction one place.
func (l *recordedLog) follows(prev *recordedLog) error {
	a, b := prev.log(), l.log()
	switch {
	case !a.Pos().Before(b.Pos()):
		return fmt.Errorf("log %d of block %d comes after log %d of block %d: logs must be in the chain's order, "+
			"each once",
			b.Index, b.Block, a.Index, a.Block)
	case a.Block == b.Block && (a.BlockHash != b.BlockHash || *prev.Timestamp != *l.Timestamp):
		return fmt.Errorf("block %d has another hash or time than on the line before", b.Block)
	case a.Block == b.Block && (b.TxIndex < a.TxIndex || (a.TxHash == b.TxHash) != (a.TxIndex == b.TxIndex)):
		return fmt.Errorf("transaction %d of block %d is out of order", b.TxIndex, b.Block)
	}
	return nil
}

// openRecording opens a file, or standard input for "-". Compression is recognized by content; a name that promises
// gzip must keep it.
func openRecording(name string, stdin io.Reader) (*recording, io.Closer, error) {
	file := io.NopCloser(stdin)
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		file = opened
	}
	r, err := newRecording(name, file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return r, file, nil
}

func newRecording(name string, file io.Reader) (*recording, error) {
	buffered := bufio.NewReader(file)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var text io.Reader = buffered
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) || strings.HasSuffix(name, ".gz") {
		if text, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%s is no gzip file: %w", name, err)
		}
	}
	scanner := bufio.NewScanner(text)
	scanner.Buffer(nil, maxLine)
	return &recording{scanner: scanner}, nil
}

// transaction returns the logs of the next transaction and its block's time in Unix milliseconds; io.EOF after the last
// one.
func (r *recording) transaction() (logs []chain.Log, blockTimeMs uint64, err error) {
	first := r.pending
	if first == nil {
		if first, err = r.next(); err != nil {
			return nil, 0, err
		}
	}
	logs = append(logs, first.log())
	for {
		r.pending, err = r.next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, 0, err
		}
		if *r.pending.TxHash != *first.TxHash {
			break
		}
		logs = append(logs, r.pending.log())
	}
	return logs, *first.Timestamp * 1000, nil
}

// next reads one log. Blank lines are nothing.
func (r *recording) next() (*recordedLog, error) {
	for r.scanner.Scan() {
		r.line++
		// When reading fails the scanner still hands out the line it was in; the failure is the better answer.
		if text := bytes.TrimSpace(r.scanner.Bytes()); len(text) > 0 && r.scanner.Err() == nil {
			return r.parse(text)
		}
	}
	if err := r.scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading line %d: %w", r.line, err)
	}
	return nil, io.EOF
}

func (r *recording) parse(text []byte) (*recordedLog, error) {
	var l recordedLog
	err := json.Unmarshal(text, &l)
	if err == nil {
		err = l.check()
	}
	if err == nil && r.last != nil {
		err = l.follows(r.last)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	r.last = &l
	return &l, nil
}
