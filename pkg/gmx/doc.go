// Package gmx is the dialect of GMX-v2-style contracts (the v2.2 line): it turns the logs of a transaction into the events of pkg/perp,
// routes logs to partitions, turns jobs into calldata, and reads reverts and receipts.
//
// Everything is decoded by item name. What the package does not know it refuses by name: an event it never heard of is an
// [UnknownEventError], a known event whose items changed is a [DecodeError]. Events that carry no state this module keeps are known and
// ignored by an explicit list (see [IgnoredEvents]); nothing is skipped because it was not understood. Earlier versions of the contracts
// (v2.0, v2.1) name and place items differently and are refused the same way.
//
// The package is pure: it knows no node, no Kafka and no database.
package gmx
