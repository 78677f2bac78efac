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

const generationsUsage = "generations list | compare A B | switch N | switch back | drop N"

// stateGenerations lists, compares, switches and drops generations of the state (PIPE-8).
func stateGenerations(ctx context.Context, s *session, args []string) error {
	db, err := s.anyDatabase(ctx)
	if err != nil {
		return err
	}
	return generations(ctx, db, s.Own, args, s.out)
}

func generations(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	verb, numbers := verbOf(args)
	switch {
	case verb == "list" && len(numbers) == 0:
		return listGenerations(ctx, db, out)
	case verb == "compare" && len(numbers) == 2:
		return compareGenerations(ctx, db, own, numbers, out)
	case verb == "switch" && len(numbers) == 1:
		return switchGeneration(ctx, db, own, numbers[0], out)
	case verb == "drop" && len(numbers) == 1:
		number, err := generationNumber(numbers[0])
		if err != nil {
			return err
		}
		return dropGeneration(ctx, db, number, out)
	}
	return usagef("usage: keeperctl %s", generationsUsage)
}

func generationNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("%q is no number of a generation (keeperctl generations list shows them)", text)
	}
	return number, nil
}

func listGenerations(ctx context.Context, db *pg.DB, out printer) error {
	all, err := db.Generations(ctx)
	if err != nil {
		return err
	}
	rows := newTable("generation", "role", "layout", "block", "records", "halted")
	for _, g := range all {
		block, records, halted := "?", "?", ""
		if g.Fits() {
			at, err := db.StandingOf(ctx, g.Number)
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
	return out.table(rows)
}

// dropGeneration gives a generation up for good.
func dropGeneration(ctx context.Context, db *pg.DB, number int, out printer) error {
	if err := db.DropGeneration(ctx, number); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "generation %d is dropped\n", number)
	return err
}

func compareGenerations(ctx context.Context, db *pg.DB, own Settings, numbers []string, out printer) error {
	a, err := generationNumber(numbers[0])
	if err != nil {
		return err
	}
	b, err := generationNumber(numbers[1])
	if err != nil {
		return err
	}
	c, err := generation.Compare(ctx, db, a, b, true, own.Patience)
	if err != nil {
		return err
	}
	rows, text := newTable("table", "equal", "first", "second"), fmt.Sprintf("at block %d %s\n", c.A.Watermark.Number,
		c.A.Watermark.Hash)
	for _, table := range perp.Tables() {
		word, equal := "equal", !slices.Contains(c.Differing(), table)
		if !equal {
			word = "DIFFERENT"
		}
		rows.add(table, equal, c.SumsA[table], c.SumsB[table])
		text += fmt.Sprintf("%-14s %-9s %s %s\n", table, word, c.SumsA[table][:16], c.SumsB[table][:16])
	}
	at := map[string]any{"block": c.A.Watermark.Number, "hash": c.A.Watermark.Hash, "tables": rows.records()}
	if err := out.either(at, text); err != nil {
		return err
	}
	if !c.Equal() {
		return fmt.Errorf("generations %d and %d differ in %v", a, b, c.Differing())
	}
	return nil
}

func switchGeneration(ctx context.Context, db *pg.DB, own Settings, to string, out printer) error {
	number, err := generationToServe(ctx, db, to)
	if err != nil {
		return err
	}
	err = generation.Switch(ctx, db, number, own.Reason, own.Patience)
	if errors.Is(err, pg.ErrApart) || pg.Refused(err) {
		return fmt.Errorf("%w (to switch all the same, say why: --keeperctl.reason)", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "readers use generation %d (the way back: keeperctl generations switch back)\n", number)
	return err
}

func generationToServe(ctx context.Context, db *pg.DB, to string) (int, error) {
	if to != "back" {
		return generationNumber(to)
	}
	return generation.Previous(ctx, db)
}
