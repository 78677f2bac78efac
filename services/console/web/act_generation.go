package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/signin"
)

// levelPatience is for how long two generations may come to stand at the same place; comparing them is bounded by
// longTimeout.
const levelPatience = 10 * time.Minute

// generationActs are those of the page of generations. What compares reads whole tables, and is done beside the page.
func (c *console) generationActs() []act {
	const back = "/generations"
	return []act{
		{name: "generation-rebuild", Title: "Rebuild the state", needs: signin.Admin, back: back,
			Warning: "Statevm fills a new generation from the beginning of the log topic, beside the one in " +
				"use. It takes disk for a second state, and time of the database.",
			state: c.fillState, will: fillWill, do: c.fill},
		{name: "generation-compare", Title: "Compare a generation with the active one", needs: signin.Operator,
			back: back, long: true,
			Warning: "All rows of both are read, as soon as both stand at the same place. The page says what came " +
				"of it.",
			state: c.generationState, will: compareWill, do: c.compare},
		{name: "generation-switch", Title: "Have readers use a generation", needs: signin.Admin, back: back, long: true,
			Warning: "The two are compared first: where they differ nothing is switched. Readers see all of the old " +
				"one or all of the new one, and both are kept up to date. The reason is for the record.",
			state: c.generationState, will: switchWill, do: c.switchTo},
		{name: "generation-back", Title: "Have readers use the generation before", needs: signin.Admin, back: back,
			WhyNeeded: true,
			Warning: "It is done at once and without comparing: this is the way back when the new one is wrong. " +
				"Readers go on from its block.",
			state: c.backState, will: backWill, do: c.switchBack},
	}
}

// Things of generations, as confirmations and the record name them.
const (
	factFilling  = "being filled"
	factUsed     = "readers use"
	factBefore   = "the one before"
	factFar      = "too far back"
	factCompared = "compared"
	nothing      = "none"
)

func generationName(number int) string {
	if number == 0 {
		return nothing
	}
	return fmt.Sprintf("generation %d", number)
}

func (c *console) fillState(ctx context.Context, _ string) (facts, error) {
	all, err := c.DB.Generations(ctx)
	if err != nil {
		return nil, err
	}
	return facts{factFilling: generationName(generation.Filling(all, c.Keeper.LogPartitions)),
		"generations": strconv.Itoa(len(all))}, nil
}

func fillWill(now facts) (facts, error) {
	if now[factFilling] != nothing {
		return nil, fmt.Errorf("%s is being filled already", now[factFilling])
	}
	return facts{factFilling: "a new generation"}, nil
}

func (c *console) fill(ctx context.Context, _ signin.Session, _, _ string) error {
	_, err := generation.Fill(ctx, c.DB, c.Kafka, c.Keeper, pageTimeout)
	return err
}

// aside finds the generation that an action is about, which is not the active one.
func (c *console) aside(ctx context.Context, target string) (number int, active pg.Generation, err error) {
	number, err = strconv.Atoi(target)
	if err != nil {
		return 0, active, fmt.Errorf("%q is no generation", target)
	}
	if err := generation.MustExist(ctx, c.DB, number); err != nil {
		return 0, active, err
	}
	active, err = generation.Active(ctx, c.DB)
	return number, active, err
}

func (c *console) generationState(ctx context.Context, target string) (facts, error) {
	number, active, err := c.aside(ctx, target)
	if err != nil {
		return nil, err
	}
	return facts{"generation": generationName(number), factUsed: generationName(active.Number),
		factCompared: cmp.Or(c.comparedWith(number), notCompared)}, nil
}

// other refuses what makes no sense with the active generation.
func other(now facts) error {
	if now["generation"] == now[factUsed] {
		return fmt.Errorf("%s is the one that readers use", now[factUsed])
	}
	return nil
}

func compareWill(now facts) (facts, error) { return facts{factCompared: "anew"}, other(now) }

func (c *console) compare(ctx context.Context, _ signin.Session, target, _ string) error {
	number, active, err := c.aside(ctx, target)
	if err != nil {
		return err
	}
	found, err := generation.Compare(ctx, c.DB, active.Number, number, false, levelPatience)
	if err != nil {
		return err
	}
	result := fmt.Sprintf("equal to generation %d at block %d", active.Number, found.A.Watermark.Number)
	if tables := found.Differing(); len(tables) > 0 {
		result = fmt.Sprintf("%s from generation %d at block %d, in %v", differs, active.Number,
			found.A.Watermark.Number, tables)
	}
	c.compared.Store(number, result)
	return nil
}

func switchWill(now facts) (facts, error) { return facts{factUsed: now["generation"]}, other(now) }

func (c *console) switchTo(ctx context.Context, _ signin.Session, target, _ string) error {
	number, _, err := c.aside(ctx, target)
	if err != nil {
		return err
	}
	if err := generation.Switch(ctx, c.DB, number, "", levelPatience); err != nil {
		return fmt.Errorf("%w (keeperctl generations switch %d can do it all the same, with a reason)", err, number)
	}
	return nil
}

func (c *console) backState(ctx context.Context, target string) (facts, error) {
	number, err := strconv.Atoi(target)
	if err != nil {
		return nil, fmt.Errorf("%q is no generation", target)
	}
	way, err := generation.Back(ctx, c.DB)
	if err != nil {
		return nil, err
	}
	now := facts{"generation": generationName(number), factUsed: generationName(way.From),
		factBefore: generationName(way.To), factFar: "no",
		"block of the one that readers use": strconv.FormatUint(way.FromBlock, 10),
		"block of the one before":           strconv.FormatUint(way.ToBlock, 10)}
	if refusal := way.Refusal(); refusal != nil {
		now[factFar] = refusal.Error()
	}
	return now, nil
}

// backWill refuses what was asked for before somebody else went back: to go back twice is to return to what was wrong.
func backWill(now facts) (facts, error) {
	if now[factBefore] != nothing && now["generation"] != now[factBefore] {
		return nil, fmt.Errorf("%s is not the one before: that is %s now", now["generation"], now[factBefore])
	}
	if now[factFar] != "no" {
		return nil, errors.New(now[factFar])
	}
	return facts{factUsed: now[factBefore], factBefore: now[factUsed]}, nil
}

func (c *console) switchBack(ctx context.Context, s signin.Session, target, why string) error {
	number, _, err := c.aside(ctx, target)
	if err != nil {
		return err
	}
	return generation.Switch(ctx, c.DB, number, why+" (by "+s.Name+")", pageTimeout)
}
