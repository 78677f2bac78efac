// Package delayed does work at its time, however long the process was away: a job is a row with a due time, and a
// periodic scan does what is due.
//
// [Scanner.Scan] first lets its sources add rows (a fee that became final, a request that will expire), then goes
// through every due row, oldest first, with at most a few in work at once. Each job runs in a transaction of its own,
// together with the change of its status: a [Kind] does its work through that transaction.
//
// # Guaranteed, given a [Store] that passes the suite in delayedtest
//
//   - Down-time loses nothing: the next scan takes all that fell due, in the order of due times (DLY-1, DLY-3, DLY-4).
//   - Several scanners never do a row twice: the row is locked, and version, status and due time are compared under the
//     lock (DLY-5).
//   - What a job did and that it is done are one commit. A job that fails leaves nothing behind but its error and the
//     count of its attempts (DLY-6).
//   - One failing job stops no other. It is tried again after a pause that grows, and parked for an operator after its
//     last attempt, or at once where the error says that the data are wrong ([IsAnomaly]) and another try would not
//     mend them (DLY-7).
//   - Time is the database's.
//
// # Not guaranteed
//
//   - Precision: a job is done when a scan finds it. A scanner wakes for the next row that falls due, but rows added
//     meanwhile by others wait for the interval.
package delayed
