// Package ttl runs a callback for each entry at its expiry, and again until the work is reported as done.
//
// Entries wait in the ttl queue until they expire, and then in the pending queue until somebody reports on them:
// [Try.Remove] reports that the work is done, [Try.Retry] that it failed. The report may come from the callback or
// later, from any goroutine; an error or a panic of the callback is a Retry. Both queues are ordered by (expiry, key)
// (TTL-1). There is no goroutine inside: [Queue.Turn] does a bounded piece of work and returns how long to sleep, and
// [Queue.Run] is the loop around it.
//
// # Guaranteed
//
//   - An entry is run at or after its expiry, by the queue's clock, and only while this process leads. One callback
//     runs at a time.
//   - A failed entry is tried again once the retry delay has passed since its failure, and never while its former
//     callback still runs.
//   - A report counts once, for the try it was made on. Reports on an entry that was replaced, removed or tried again
//     since change nothing (TTL-2, TTL-8).
//   - A change of role moves every pending entry back to the ttl queue with the expiry it had (TTL-6). A try that was
//     under way may still be reported, as long as no newer one has begun.
//   - After [Queue.Stop] has returned no callback runs and none will (TTL-7).
//
// # Not guaranteed
//
//   - Nothing is stored: entries end with the process. What must survive is package delayed's business.
//   - A try that nobody reports on keeps its entry pending for ever; the age of the oldest one is a metric.
//   - A callback that was under way when the role was lost is not interrupted. What it does is fenced elsewhere.
package ttl
