package sender

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/retry"
)

// pauses checks whether signers are out: paused, whoever paused them, unable to sign, or worked by nobody. Others than
// its own it tells of where they have jobs and no process: nobody else does.
type pauses struct {
	signers interface {
		List(ctx context.Context) ([]txstore.SignerStatus, error)
	}
	own     []chain.Address
	notice  func(part, reason string) // to readiness, of one that has jobs or cannot sign
	metrics *Metrics
	log     zerolog.Logger

	why map[chain.Address]string
}

// Run looks every second until ctx ends. What cannot be asked stays as it was.
func (p *pauses) Run(ctx context.Context) error {
	for {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			p.log.Debug().Err(err).Msg("whether signers are paused is not known")
		}
		if !retry.Sleep(ctx, time.Second) {
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
		own, idle, why := slices.Contains(p.own, s.Signer), s.Queued+s.InFlight == 0, s.Out()
		if s.Unheld && idle { // nothing waits for whoever is to work it
			why = s.Paused
		}
		if !own && (idle || !s.Unheld) {
			why = ""
			p.metrics.paused.DeleteLabelValues(s.Signer.Hex())
		} else {
			p.metrics.paused.WithLabelValues(s.Signer.Hex()).Set(metric.Bool(why != ""))
		}
		p.why[s.Signer] = why
		p.notice("signer "+s.Signer.Hex()+" is out", map[bool]string{false: why}[idle && s.Unable == ""])
		switch was := before[s.Signer]; {
		case why != "" && was == "":
			p.log.Warn().Str("signer", s.Signer.Hex()).Str("reason", why).
				Msg("the signer is out: it claims nothing new")
		case why == "" && was != "":
			p.log.Info().Str("signer", s.Signer.Hex()).Msg("the signer is no longer out")
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
