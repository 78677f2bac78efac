package demo

import (
	"context"
	"time"
)

// Act is something that happens to keepers, and what the chain must show of it.
type Act struct {
	Name string
	// Open does what the act begins with; nil = nothing.
	Open func(context.Context, *Play) error
	// Run goes on until the act is over; [Lasts] waits.
	Run    func(context.Context, *Play) error
	Expect Expectation
}

// Kill opens an act with some keepers' end.
func Kill(tiers ...int) func(context.Context, *Play) error {
	return func(_ context.Context, p *Play) error {
		p.Down(tiers...)
		return nil
	}
}

// Restore opens an act with some keepers' return.
func Restore(tiers ...int) func(context.Context, *Play) error {
	return func(_ context.Context, p *Play) error {
		p.Up(tiers...)
		return nil
	}
}

// Lasts is an act that leaves the keepers to themselves for a time.
func Lasts(d time.Duration) func(context.Context, *Play) error {
	return func(ctx context.Context, p *Play) error { return p.Wait(ctx, d) }
}
