// Package planner turns state and prices into jobs (PIPE-4). It knows no tiers: every keeper finds every job (TIER-3).
//
// It takes one consistent view of the derived state (all partitions as of the same block), judges every position of its
// shards exactly, asks of every order whether it is due, and publishes what has to be executed to the job topic. Its
// shards are the partitions of the log topic that the consumer group assigned to it; it reads no log and sees no chain.
//
// Guaranteed: a job's id follows from state, so finding it again, or in two planners, or after a restart, is one job;
// live jobs are published again at every sweep, so a lost record delays a job and loses none. Not guaranteed: that a
// published job is still due when somebody reads it. The sender looks again.
package planner
