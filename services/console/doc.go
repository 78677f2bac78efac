// Package console is the operators' process: what a keeper does in the background, and its notifications. It reads
// topics and tables as anybody else would, so that nothing it does, however slow, is in the way of a transaction: no
// process of the pipeline waits for it, and a keeper finds, sends and records without it.
//
//   - Owners and operators are notified of results, see [notify]: each message at least once, in the order of
//     the results.
//   - In a keeper that never sends (tier.monitor) it watches the others, and raises alarms about them (TIER-19).
//
// Not guaranteed: that anybody is notified while no console runs. What ended meanwhile is reported when one runs again,
// as far back as the result topic reaches; an alarm that passed meanwhile is not.
package console
