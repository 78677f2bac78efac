package job

// ExecutionSeconds are the bounds of histograms of the time from a job's due time to its execution. The steps of the
// alert rules (15, 30, 60 s) and the objective (10 s) are among them, so that the rules are exact and not interpolated.
func ExecutionSeconds() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300}
}
