package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// stateGenerations lists, compares, switches and drops generations of the state (PIPE-8).
func stateGenerations(ctx context.Context, s *session, args []string) error {
	db, err := s.anyDatabase(ctx)
	if err != nil {
		return err
	}
	return generations(ctx, db, s.Own, args, s.out)
}

func generations(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	d := generationCommands{db, own, out}
	return verbs{"list": d.list, "compare": d.compare, "switch": d.switchTo, "drop": d.drop}.do(ctx, "generations",
		args)
}

// generationCommands is one invocation of the command.
type generationCommands struct {
	db  *pg.DB
	own Settings
	out printer
}

func generationNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("%q is no number of a generation (keeperctl generations list shows them)", text)
	}
	return number, nil
}

func (d generationCommands) list(ctx context.Context, _ []string) error {
	all, err := d.db.Generations(ctx)
	if err != nil {
		return err
	}
	rows := newTable("generation", "role", "layout", "block", "records", "halted")
	for _, g := range all {
		block, records, halted := "?", "?", ""
		if g.Fits() {
			at, err := d.db.ProgressOf(ctx, g.Number)
			if err != nil {
				return err
			}
			var read int64
			for _, o := range at.Offsets {
				read += o.Next
			}
			block, records, halted = strconv.FormatUint(at.Watermark.Number, 10), strconv.FormatInt(read, 10), at.Halted
		}
		rows.add(g.Number, g.Role(), g.Layout, block, records, halted)
	}
	return d.out.table(rows)
}

// drop gives a generation up for good.
func (d generationCommands) drop(ctx context.Context, args []string) error {
	number, err := generationNumber(args[0])
	if err != nil {
		return err
	}
	if err := d.db.DropGeneration(ctx, number); err != nil {
		return err
	}
	return sayf(d.out, "generation %d is dropped\n", number)
}

func (d generationCommands) compare(ctx context.Context, numbers []string) error {
	a, err := generationNumber(numbers[0])
	if err != nil {
		return err
	}
	b, err := generationNumber(numbers[1])
	if err != nil {
		return err
	}
	c, err := generation.Compare(ctx, d.db, a, b, d.own.Patience)
	if err != nil {
		return err
	}
	rows, text := newTable("table", "equal"), fmt.Sprintf("at block %d %s\n", c.A.Watermark.Number,
		c.A.Watermark.Hash)
	for _, table := range perp.Tables() {
		word, equal := "equal", !slices.Contains(c.Differing(), table)
		if !equal {
			word = "DIFFERENT"
		}
		rows.add(table, equal)
		text += fmt.Sprintf("%-14s %s\n", table, word)
	}
	at := map[string]any{"block": c.A.Watermark.Number, "hash": c.A.Watermark.Hash, "tables": rows.records()}
	if err := d.out.either(at, text); err != nil {
		return err
	}
	if !c.Equal() {
		return fmt.Errorf("generations %d and %d differ in %v", a, b, c.Differing())
	}
	return nil
}

func (d generationCommands) switchTo(ctx context.Context, args []string) error {
	number, err := generationNumber(args[0])
	if err != nil {
		return err
	}
	err = generation.Switch(ctx, d.db, number, d.own.Reason, d.own.Patience)
	if errors.Is(err, pg.ErrApart) || pg.Refused(err) {
		return fmt.Errorf("%w (to switch all the same, say why: --keeperctl.reason)", err)
	}
	if err != nil {
		return err
	}
	return sayf(d.out, "readers use generation %d (the way back: keeperctl generations switch N)\n", number)
}
