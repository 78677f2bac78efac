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
	return func(ctx context.Context, std IO) error {
		if *logs == "" {
			return usagef("--logs is missing: name a recording, or - for standard input")
		}
		f := fold{book: perp.NewBook()}
		if *emitter != "" {
			address, err := chain.ParseAddress(*emitter)
			if err != nil {
				return usagef("--emitter: %w", err)
			}
			f.decoder = gmx.NewDecoder(address)
		}
		if err := f.file(ctx, *logs, std.In); err != nil {
			return err
		}
		text, err := dump(f.book, f.seen)
		if err != nil {
			return fmt.Errorf("writing the state as JSON: %w", err)
		}
		return deliver(text, *out, std.Out)
	}
}

// fold is a recording being folded.
type fold struct {
	book    *perp.Book
	decoder *gmx.Decoder
	seen    extent
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
	for _, e := range events {
		if err := perp.Apply(f.book, e); err != nil {
			return fmt.Errorf("block %d, transaction %s: %w", logs[0].Block, logs[0].TxHash, err)
		}
	}
	if f.seen.Logs == 0 {
		f.seen.FirstBlock = logs[0].Block
	}
	f.seen.Logs += uint64(len(logs))
	f.seen.LastBlock = logs[0].Block
	return nil
}
