// Command txmgr sends calls through the transaction manager of OP's op-service, as a comparison with ours. It stands in
// a module of its own, so that nothing else depends on it; test/hammer plays the chain for both.
//
// Usage: txmgr <rpc> <key> <jobs> <in flight> <gap ms>. It writes a line "ready", waits until its standard input ends,
// writes a line "<job> <Unix ns>" when a call is handed over, and ends when all have their receipt, with 1 if any failed.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/ethereum-optimism/optimism/op-service/txmgr"
	"github.com/ethereum-optimism/optimism/op-service/txmgr/metrics"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/log"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "txmgr:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("want <rpc> <key> <jobs> <in flight> <gap ms>, got %d arguments", len(args))
	}
	var numbers [3]int
	for i, text := range args[2:] {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	jobs, inFlight, gap := numbers[0], numbers[1], time.Duration(numbers[2])*time.Millisecond
	cfg := txmgr.NewCLIConfig(args[0], txmgr.DefaultChallengerFlagValues)
	cfg.PrivateKey, cfg.NumConfirmations, cfg.ReceiptQueryInterval = args[1], 1, 50*time.Millisecond
	cfg.ResubmissionTimeout, cfg.TxSendTimeout = 24*time.Second, 0
	logger := log.NewLogger(log.NewTerminalHandlerWithLevel(os.Stderr, log.LevelWarn, false))
	manager, err := txmgr.NewSimpleTxManager("peer", logger, &metrics.NoopTxMetrics{}, cfg)
	if err != nil {
		return err
	}
	queue := txmgr.NewQueue[int](context.Background(), manager, uint64(inFlight))
	receipts := make(chan txmgr.TxReceipt[int], jobs)
	to := common.Address{0xad}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for id := range jobs {
		data := make([]byte, 4+5*32) // updateAdlState(address,bool,…) as far as the node reads it
		data[4+12] = 0xa1
		binary.BigEndian.PutUint64(data[4+24:], uint64(id))
		fmt.Println(id, time.Now().UnixNano())
		queue.Send(id, txmgr.TxCandidate{TxData: data, To: &to, Value: new(big.Int)}, receipts)
		time.Sleep(gap)
	}
	failed := 0
	for range jobs {
		if r := <-receipts; r.Err != nil {
			failed++
			fmt.Fprintln(os.Stderr, "job", r.ID, r.Err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d calls failed", failed, jobs)
	}
	return nil
}
