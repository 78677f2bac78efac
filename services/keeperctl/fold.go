package keeperctl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// foldCommand folds a recording by the very code that keeps the database: the decoder of pkg/gmx and perp.Apply.
func foldCommand(flags *flag.FlagSet) func(context.Context, IO) error {
	logs := flags.String("logs", "", "recording to fold: JSON lines, plain or gzip; - for standard input")
	out := flags.String("out", "", "file to write, whole or not at all; standard output when empty")
	emitter := flags.String("emitter", "", "address of the EventEmitter; that of the first log when empty")
	questions := flags.String("cases", "", "JSON array of positions with times and prices to judge: print the verdicts instead of the state")
	tokens := flags.String("tokens", "", "what symbols in the cases mean, where the recording leaves it open: SYMBOL=ADDRESS:DECIMALS,…")
	return func(ctx context.Context, std IO) error {
		if *logs == "" {
			return usagef("there is nothing to fold: name a recording, or - for standard input")
		}
		f := fold{book: perp.NewBook(), oracle: map[chain.Address]perp.Price{}}
		if *emitter != "" {
			address, err := chain.ParseAddress(*emitter)
			if err != nil {
				return usagef("--emitter: %w", err)
			}
			f.decoder = gmx.NewDecoder(address)
		}
		if *questions != "" {
			names, err := parseTokens(*tokens)
			if err != nil {
				return usagef("--tokens: %w", err)
			}
			if f.cases, err = readCases(*questions, names); err != nil {
				return err
			}
		}
		if err := f.file(ctx, *logs, std.In); err != nil {
			return err
		}
		text, err := f.result()
		if err != nil {
			return err
		}
		return deliver(text, *out, std.Out)
	}
}

// fold is a recording being folded.
type fold struct {
	book    *perp.Book
	decoder *gmx.Decoder
	cases   *cases // nil where the state is asked for
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
		if token, price, is := gmx.OraclePrice(l); is {
			f.oracle[token] = price
		}
	}
}

// result is what was asked for: the verdicts on cases, or the state.
func (f *fold) result() ([]byte, error) {
	if f.cases != nil {
		return f.cases.rest(f)
	}
	text, err := dump(f.book, f.seen)
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
		if f.cases != nil && f.seen.Logs > 0 {
			if err := f.cases.before(logs[0].Block, blockTimeMs/1000, f); err != nil {
				return err
			}
		}
		if err := f.transaction(logs, blockTimeMs); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *fold) transaction(logs []chain.Log, blockTimeMs uint64) error {
	if f.decoder == nil {
		f.decoder = gmx.NewDecoder(logs[0].Address)
	}
	events, err := f.decoder.Transaction(logs, blockTimeMs)
	if err != nil {
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
