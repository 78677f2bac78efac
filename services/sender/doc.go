// Package sender turns jobs into transactions (PIPE-5): once each, with nonces nobody else was given, and stored
// before they are broadcast.
//
// A member of the group on the job topic gets partitions, and for each an intake stores its jobs as intents, or lets
// them wait in memory while they are another keeper's to execute. In worker-queue mode the signers that hash to a
// partition come with it, and where their process is gone any sender works them and their partition until the group has
// given it away; in basic mode every sender tries for the lease of every signer whose key it has. What is done for a
// signer is [txmanager]'s: it claims, broadcasts, confirms and records. This package hands it the stages that a
// task goes through before its claim, see [Sender.open], and what a mined transaction means.
//
// Where several keepers share the jobs, every sender also follows all jobs and all executions of the chain, and the
// turn stage asks [turns] whose turn a job is.
//
// # Guaranteed, beside what [txmanager] guarantees of transactions
//
//   - Nothing is lost when the process is killed at any instant: jobs are read back from the topic by age, intents and
//     bytes are stored before they act.
//   - Whichever sender a job comes to, it is done once, under the lease of its signer (NON-4).
//
// # Not guaranteed
//
//   - That no other keeper executes the same job: windows keep them apart, but a slow transaction may land in
//     another's, and what the chain shows is believed before it is final. The contract lets one win, and ours is then a
//     lost race.
//   - That a result is published once. Readers tell repetitions by job and attempt.
package sender
