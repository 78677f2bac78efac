// Package turns decides whose turn a job is where several keepers share the jobs (TIER-9 to TIER-11), and keeps the
// jobs of other keepers' windows until their own. What it rests on package evidence reads: the jobs that planners say,
// and the executions that the chain shows.
//
// It knows the chain's clock and what was executed, and nothing of the venue's rules, of state or of nonces. Whether a
// job is still to be done is not asked here.
//
// Guaranteed: a keeper that has not read the past of all partitions reports that ([Tracker.EvidenceMs]), so that the
// freshness gate keeps it from acting on half of the evidence; a job whose turn has passed is asked about again for its
// next window. Not guaranteed: that two keepers never execute the same job; the contracts arbitrate, and who was late
// has lost a race.
package turns
