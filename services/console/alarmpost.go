package console

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/notify"
)

// alarmPost delivers alarms to one receiver, one after the other, for as long as it takes. One that is away keeps
// nothing from the others.
type alarmPost struct {
	to     notify.Receiver
	policy notify.Policy
	unsent chan notify.Message
	log    zerolog.Logger
}

func newAlarmPost(to notify.Receiver, policy notify.Policy, log zerolog.Logger) *alarmPost {
	const most = 64 // alarms that wait for a receiver; further ones are dropped, and that is logged
	return &alarmPost{to: to, policy: policy, unsent: make(chan notify.Message, most),
		log: log.With().Str("receiver", to.Name).Logger()}
}

// queue has a message delivered. It never waits.
func (p *alarmPost) queue(message notify.Message) {
	select {
	case p.unsent <- message:
	default:
		p.log.Error().Str("message", message.ID).
			Msg("this receiver of the operators has been away for so long that it does not get this")
	}
}

// run delivers until ctx ends.
func (p *alarmPost) run(ctx context.Context) error {
	for {
		select {
		case message := <-p.unsent:
			err := p.policy.Deliver(ctx, p.to, message, func(_ int, err error, _ time.Duration) {
				p.log.Warn().Err(err).Str("message", message.ID).Msg("not told yet")
			})
			if err != nil && ctx.Err() == nil {
				p.log.Error().Err(err).Str("message", message.ID).Msg("this receiver of the operators refuses this")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
