package sender

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/service/metric"
)

// pauses checks whether the signers of this process are paused, whoever paused them: a sender that gave up on one, or
// an operator at another machine.
type pauses struct {
	signers interface {
		List(ctx context.Context) ([]outbox.SignerStanding, error)
	}
	own     []chain.Address
	metrics *Metrics
	log     zerolog.Logger

	why map[chain.Address]string
}

// Run looks every other second until ctx ends. What cannot be asked stays as it was.
func (p *pauses) Run(ctx context.Context) error {
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			p.log.Debug().Err(err).Msg("whether signers are paused is not known")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *pauses) look(ctx context.Context) error {
	all, err := p.signers.List(ctx)
	if err != nil {
		return err
	}
	before := p.why
	p.why = map[chain.Address]string{}
	for _, s := range all {
		if !slices.Contains(p.own, s.Signer) {
			continue
		}
		p.why[s.Signer] = s.Paused
		p.metrics.paused.WithLabelValues(s.Signer.Hex()).Set(metric.Bool(s.Paused != ""))
		switch was := before[s.Signer]; {
		case s.Paused != "" && was == "":
			p.log.Warn().Str("signer", s.Signer.Hex()).Str("reason", s.Paused).
				Msg("the signer is paused: it claims nothing new")
		case s.Paused == "" && was != "":
			p.log.Info().Str("signer", s.Signer.Hex()).Msg("the signer is no longer paused")
		}
	}
	return nil
}

func (s *Sender) addresses() []chain.Address {
	own := make([]chain.Address, len(s.keys))
	for i, key := range s.keys {
		own[i] = key.Address()
	}
	return own
}
