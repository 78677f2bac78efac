package statevm

import (
	"context"
	"errors"
	"time"

	"perpkeeper/pkg/backup"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/snapshot"
)

// snapshotLook is how often, of an interval, somebody looks whether a snapshot is due; a minute at most lies between
// two looks.
const snapshotLook = 20

// takeSnapshots takes a snapshot of the active generation whenever the newest is older than the interval, and removes
// the oldest. All instances look; one of them takes it. What fails is tried again at the next look.
func (s *Statevm) takeSnapshots(ctx context.Context, in snapshot.Store) error {
	every := s.cfg.Snapshot.Every
	s.metrics.snapshots.interval.Set(every.Seconds())
	for {
		s.takeSnapshot(ctx, in)
		if !retry.Sleep(ctx, min(every/snapshotLook, time.Minute)) {
			return nil
		}
	}
}

// takeSnapshot takes one if it is due.
func (s *Statevm) takeSnapshot(ctx context.Context, in snapshot.Store) {
	began := time.Now()
	newest, err := backup.Newest(ctx, in)
	if err == nil && !newest.IsZero() {
		s.metrics.snapshots.newest.Set(float64(newest.Unix()))
	}
	if err == nil && time.Since(newest) < s.cfg.Snapshot.Every {
		return
	}
	var m snapshot.Manifest
	if err == nil {
		m, err = backup.Take(ctx, s.db, in, s.cfg.Keeper.ChainID, s.cfg.Snapshot.Every)
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, pg.ErrExporting), errors.Is(err, backup.ErrFresh):
	case pg.Refused(err):
		s.log.Info().Err(err).Msg("no snapshot of the state yet")
	case err != nil:
		s.metrics.snapshots.failed.Inc()
		s.log.Error().Err(err).Msg("a snapshot of the state failed")
	default:
		s.metrics.snapshots.taken(m, time.Since(began))
		s.log.Info().Str("snapshot", m.Name()).Int64("rows", m.Rows()).Int64("bytes", m.Bytes()).
			Dur("took", time.Since(began)).Msg("snapshot of the state taken")
		s.removeSnapshots(ctx, in)
	}
}

func (s *Statevm) removeSnapshots(ctx context.Context, in snapshot.Store) {
	removed, err := snapshot.Prune(ctx, in, s.cfg.Snapshot.Keep, time.Now())
	if err != nil {
		s.metrics.snapshots.failed.Inc()
		s.log.Error().Err(err).Msg("removing old snapshots failed")
	}
	if len(removed) > 0 {
		s.log.Info().Strs("snapshots", removed).Msg("old snapshots removed")
	}
}
