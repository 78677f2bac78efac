package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// foldCommand folds a recording by the very code that keeps the database: the decoder of pkg/gmx and perp.Apply.
func foldCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fold",
		Short: "fold a recording of event logs and print the state it leaves, or the verdicts on cases",
		Args:  cobra.NoArgs,
	}
	flags := cmd.Flags()
	logs := flags.String("logs", "", "recording to fold: JSON lines, plain or gzip; - for standard input")
	out := flags.String("out", "", "file to write, whole or not at all; standard output when empty")
	emitter := flags.String("emitter", "", "address of the EventEmitter; that of the first log when empty")
	questions := flags.String("cases", "", "JSON array of positions with times and prices to judge: print the "+
		"verdicts instead of the state")
	swaps := flags.String("swap-cases", "", "JSON of swaps with blocks and prices: print what the venue would give "+
		"for each instead of the state")
	written := flags.String("words", "", "JSON array of words of the exchange's store that no event carries, each "+
		"with its block, to take in as well")
	versions := flags.String("rules", "", "JSON of the versions of the contracts that handlers are of; all are of "+
		"v2.2b when empty")
	tokens := flags.String("tokens", "", "what symbols in the cases mean, where the recording leaves it open: "+
		"SYMBOL=ADDRESS:DECIMALS,…")
	_ = cmd.MarkFlagRequired("logs") // there is one
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := fold{book: perp.NewBook(), oracle: map[chain.Address]perp.Price{}}
		if *emitter != "" {
			address, err := chain.ParseAddress(*emitter)
			if err != nil {
				return fmt.Errorf("--emitter: %w", err)
			}
			f.decoder = gmx.NewDecoder(address)
		}
		if err := f.ask(*questions, *swaps, *tokens); err != nil {
			return err
		}
		if *written != "" {
			var err error
			if f.words, err = readWords(*written); err != nil {
				return err
			}
		}
		var err error
		if f.rules, err = readRules(*versions); err != nil {
			return fmt.Errorf("--rules: %w", err)
		}
		if err := f.file(cmd.Context(), *logs, cmd.InOrStdin()); err != nil {
			return err
		}
		text, err := f.result()
		if err != nil {
			return err
		}
		return deliver(text, *out, cmd.OutOrStdout())
	}
	return cmd
}

// ask reads what is asked of the fold, where that is not the state.
func (f *fold) ask(positions, swaps, tokens string) error {
	names, err := parseTokens(tokens)
	switch {
	case err != nil:
		return fmt.Errorf("--tokens: %w", err)
	case positions != "" && swaps != "":
		return errors.New("--cases and --swap-cases have an answer each: ask one of them at a time")
	case positions != "":
		f.cases, err = readCases(positions, names)
	case swaps != "":
		f.swaps, err = readSwapCases(swaps, names)
	}
	return err
}

// fold is a recording being folded.
type fold struct {
	book    *perp.Book
	decoder *gmx.Decoder
	rules   *rules
	words   words  // not taken in yet
	cases   *cases // nil where they are not asked for, as the swaps
	swaps   *swapCases
	seen    extent
	seconds uint64 // the time of the last block
	oracle  map[chain.Address]perp.Price
}

// note keeps the prices the exchange's oracle took, where cases will be asked: they tell which symbol is which token.
func (f *fold) note(logs []chain.Log) {
	if f.cases == nil {
		return
	}
	for _, l := range logs {
		if token, price, _, is := gmx.OracleReport(l); is {
			f.oracle[token] = price
		}
	}
}

// result is what was asked for: the answers to cases, or the state.
func (f *fold) result() ([]byte, error) {
	switch {
	case f.cases != nil:
		return f.cases.rest(f)
	case f.swaps != nil:
		return f.swaps.rest(f)
	}
	if err := f.settle(math.MaxUint64); err != nil {
		return nil, err
	}
	text, err := dump(f.book, f.seen, f.rules)
	if err != nil {
		return nil, fmt.Errorf("writing the state as JSON: %w", err)
	}
	return text, nil
}

// extent is what a recording covers.
type extent struct {
	Logs       uint64 `json:"logs"`
	FirstBlock uint64 `json:"firstBlock"`
	LastBlock  uint64 `json:"lastBlock"`
}

func (f *fold) file(ctx context.Context, name string, stdin io.Reader) error {
	r, file, err := openRecording(name, stdin)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := f.recording(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (f *fold) recording(ctx context.Context, r *recording) error {
	for ctx.Err() == nil {
		logs, blockTimeMs, err := r.transaction()
		switch {
		case errors.Is(err, io.EOF) && f.seen.Logs == 0:
			return errors.New("there is no log in it")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f.answer(logs[0].Block, blockTimeMs/1000); err != nil {
			return err
		}
		if err := f.transaction(logs, blockTimeMs); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// answer answers what is asked of the state before a block, and takes in the words of earlier blocks.
func (f *fold) answer(block, seconds uint64) error {
	var err error
	switch {
	case f.seen.Logs == 0:
	case f.cases != nil:
		err = f.cases.before(block, seconds, f)
	case f.swaps != nil:
		err = f.swaps.before(block, f)
	}
	if err != nil || block == 0 {
		return err
	}
	return f.settle(block - 1)
}

func (f *fold) transaction(logs []chain.Log, blockTimeMs uint64) error {
	if f.decoder == nil {
		f.decoder = gmx.NewDecoder(logs[0].Address)
	}
	events, err := f.decoder.Transaction(logs, blockTimeMs)
	if err != nil {
		return err
	}
	if err := f.rules.before(f.book, logs, blockTimeMs); err != nil {
		return err
	}
	f.note(logs)
	for _, e := range events {
		if err := perp.Apply(f.book, e); err != nil {
			return fmt.Errorf("block %d, transaction %s: %w", logs[0].Block, logs[0].TxHash, err)
		}
	}
	if f.seen.Logs == 0 {
		f.seen.FirstBlock = logs[0].Block
	}
	f.seen.Logs += uint64(len(logs))
	f.seen.LastBlock, f.seconds = logs[0].Block, blockTimeMs/1000
	return nil
}
