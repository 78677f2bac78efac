package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// replay has one job, or every job that was given up, said again.
func (d deadLetters) replay(ctx context.Context, which string) error {
	chosen, err := d.choose(ctx, which)
	if err != nil {
		return err
	}
	said, at, err := d.Replay(ctx, chosen)
	for _, s := range said {
		if _, failed := fmt.Fprintf(d.out, "%s: partition %d\n", s.JobID, s.Partition); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "%d said again as of block %d; a sender takes a job up unless it is doing it, "+
		"or ended it less than %s of chain time before that block; what becomes of it is in %s\n",
		len(said), at.Number, txm.CoolDown(job.Refused, txm.Retries, 0), wire.ResultTopic(d.Keeper.ChainID))
	return err
}

// choose returns the letter at an offset, or the newest one of each job.
func (d deadLetters) choose(ctx context.Context, which string) ([]deadletter.Letter, error) {
	if strings.Trim(which, "0123456789") == "" {
		offset, err := letterOffset(which)
		if err != nil {
			return nil, err
		}
		l, err := d.Replayable(ctx, offset)
		return []deadletter.Letter{l}, err
	}
	if source, _ := d.source(which); source != wire.JobTopic(d.Keeper.ChainID) {
		return nil, deadletter.ErrNotReplayed
	}
	return d.GivenUp(ctx)
}
