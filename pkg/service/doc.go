// Package service is the frame of every process: configuration, logging, signals, a run group, clean-up, readiness,
// metrics, profiles and build information. A main is a few lines,
//
//	func main() {
//		service.Main("scanner", scanner.DefaultConfig(), scanner.Start, service.About("scanner copies …"), service.Metrics(scanner.RegisterMetrics))
//	}
//
// and a service's start reads like a list of what it needs:
//
//	func Start(sh *service.Shell, cfg Config) error {
//		store, err := pg.Open(sh.Context(), cfg.Postgres)
//		if err != nil {
//			return fmt.Errorf("connecting to postgres: %w", err)
//		}
//		sh.OnStop("postgres", store.Close)
//		s := New(cfg, store, NewMetrics(sh.Registry), sh.Log)
//		sh.Go("scan", s.Run)
//		return nil
//	}
//
// Guaranteed: the first member that fails stops all others; clean-ups run youngest first, after the members, whether
// the process was asked to stop, failed, or never finished its start; a stop ends within the grace period whatever
// members and clean-ups do; a second signal ends the process at once; the exit code tells these apart (0 asked, 1
// failed, 2 bad configuration; a second signal ends it as the system does); an operator's error is one line.
//
// Not guaranteed: a member that ignores its context is not killed but left behind when the process exits, so nothing
// may depend on a clean stop to be correct.
package service
