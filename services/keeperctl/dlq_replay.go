package keeperctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// replay has one job, or every job that was given up, said again. A sender looks at a job anew before it does anything
// about it, and has one arm of it at a time: saying a job again, or twice, executes nothing twice.
func (d deadLetters) replay(ctx context.Context, which string) error {
	chosen, err := d.choose(ctx, which)
	if err != nil {
		return err
	}
	at, err := d.present(ctx)
	if err != nil {
		return err
	}
	for _, l := range chosen {
		if err := d.sayAgain(ctx, l, at); err != nil {
			return fmt.Errorf("replaying letter %d: %w", l.Offset, err)
		}
	}
	_, err = fmt.Fprintf(d.out, "%d said again as of block %d; a sender takes a job up unless it is doing it, "+
		"or ended it less than %s of chain time before that block; what becomes of it is in %s\n",
		len(chosen), at.Number, txm.CoolDown(job.Refused, txm.Retries, 0), wire.ResultTopic(d.keeper.ChainID))
	return err
}

// choose returns the letter at an offset, or the newest one of each job.
func (d deadLetters) choose(ctx context.Context, which string) ([]letter, error) {
	jobs := wire.JobTopic(d.keeper.ChainID)
	if strings.Trim(which, "0123456789") == "" {
		offset, err := letterOffset(which)
		if err != nil {
			return nil, err
		}
		l, err := d.letter(ctx, offset)
		if err == nil && l.source() != jobs {
			return nil, errNeverReplayed
		}
		return []letter{l}, err
	}
	if source, _ := d.source(which); source != jobs {
		return nil, errNeverReplayed
	}
	found, err := d.letters(ctx, jobs)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	slices.Reverse(found)
	found = slices.DeleteFunc(found, func(l letter) bool {
		id := l.header("job")
		older := seen[id]
		seen[id] = true
		return older
	})
	slices.Reverse(found)
	return found, nil
}

// present is the block the state stands at.
func (d deadLetters) present(ctx context.Context) (chain.BlockRef, error) {
	standing, err := d.state.Standing(ctx)
	switch {
	case err != nil:
		return chain.BlockRef{}, fmt.Errorf("asking how far the state is: %w", err)
	case standing.Halted != "":
		return chain.BlockRef{}, fmt.Errorf("the state is halted, and no sender would act on it: %s", standing.Halted)
	case standing.Watermark.Hash.IsZero():
		return chain.BlockRef{}, errors.New("the state has no block yet, and no sender would act on it")
	}
	return standing.Watermark.BlockRef, nil
}

// sayAgain writes the job as it was, to where its signer's jobs are, but for the block it is known from: a sender
// passes over what was known before the last arm ended, and this is the operator's word that the job is still to be
// done.
func (d deadLetters) sayAgain(ctx context.Context, l letter, at chain.BlockRef) error {
	message, _, err := wire.Decode(l.Record)
	if err != nil {
		return err
	}
	said, is := message.(wire.Job)
	if !is {
		return fmt.Errorf("it holds a %T and no job", message)
	}
	j := said.Job
	if key := l.header("source.key"); !bytes.Equal([]byte(key), j.Signer[:]) {
		return fmt.Errorf("its key %x is not the job's signer %s", key, j.Signer)
	}
	j.Evidence.Block = at
	record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
	if err != nil {
		return err
	}
	partition := wire.SignerPartition(j.Signer, d.keeper.JobPartitions)
	if _, err := d.client.Producer(wire.JobTopic(d.keeper.ChainID)).
		Produce(ctx, partition, []bus.Record{record}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "%s: partition %d\n", j.ID, partition)
	return err
}
