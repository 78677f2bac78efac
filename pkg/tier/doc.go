// Package tier decides whose turn it is: which of several keepers, that share nothing but the chain, executes a job at
// a moment (TIER).
//
// Everything here is pure and runs on the chain's clock: ages are differences between times of blocks and reports,
// never between those and a wall clock, because a clock that is 31 s wrong would make two tiers act on nearly every
// job. Where the chain stands still, its clock stands still, and nobody fires into a halted chain.
//
// [Windows] and [Delay] are the rules of turns, [Queue] holds the jobs that wait for theirs, [Evidence] is what the
// chain shows of the others, and [Bounds] is the gate before everything that is signed to execute a job.
//
// # Guaranteed
//
// Under the policy windows, two keepers whose heads are at most the guard apart and who agree on a job's due time and
// on the facts up to their heads never both own the job: a window belongs to one tier, nothing is sent in its last
// part, nobody owns a job whose life is over, so that they may learn at different moments that it was renewed, and a
// suspicion is applied by the suspect at once and by the others later. A suspicion takes no turn from anybody but the
// suspect: whatever is suspected, a keeper has the windows that the clock gives it, so that suspecting one that is down
// never lets a job wait longer. A job that was put into a queue leaves it as ready, removed, or ended for its age,
// once.
//
// # Not guaranteed
//
// That only one transaction is sent: a transaction may be slow and land in another's window, evidence may be seen in
// another order, and what a simulated call shows is known to one keeper alone. The contract arbitrates then, and the
// loser's transaction reverts.
//
// That a job waits no longer than a window for the next keeper: where the substitute of a suspected keeper goes down as
// well, its jobs wait for both windows, until it is suspected itself. It is the two keepers' own time, and no more than
// if nobody had been suspected.
//
// That a suspicion is just. Executions are believed before they are final, and a reorg may take back the one that
// accused somebody: the accusation stays until the accused executes anything.
package tier
