// Package gmx encodes and decodes for GMX-v2-style contracts (v2.2b and v2.2c): it turns the logs of a transaction into
// the events of pkg/perp, routes logs to partitions, turns jobs into calldata, and reads reverts and receipts.
//
// Everything is decoded by item name. What the package does not know it refuses by name: an event it does not know is
// an [UnknownEventError], a known event that lacks an item is a [DecodeError]. An item that is missing is never made
// up; items beyond those that are read are left alone, because later versions append. Events that carry no state this
// module keeps are known and ignored by an explicit list (a kind of event without a decoder), whatever their shape;
// nothing is skipped because it was not understood. The events of v2.1 and older have other items and are refused.
//
// Data is read strictly: exactly what the Solidity compiler writes, and go-ethereum would write again, is accepted.
// Padding that is not zero, offsets out of order or shared, bytes after the end and items of one name twice are
// refused, although lenient readers take them: each lets one log say two things to two readers, or cost more than its
// length to read.
//
// The package is pure: it knows no node, no Kafka and no database.
package gmx
