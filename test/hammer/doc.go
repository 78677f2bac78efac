// Package hammer proves that however senders are treated, no nonce is given to two jobs, no job is executed twice, none
// is lost, and the nonces have no gap in the end (NON-1, NON-2, NON-14). Three processes share one signer. They are
// frozen past the end of their leases and woken, killed and started again, and their requests to the database and to
// the node are lost before or after they were heard. What happened is read from the chain and from the rows.
//
// There are two strengths:
//
//   - TestSenders: the sender as it is shipped, with Kafka, on a node that mines at once. `make hammer` takes about a
//     minute; KEEPER_HAMMER=n makes it n jobs.
//   - TestAllocations: the stores, the lease and the node's client without the rest of the sender, for numbers that the
//     whole sender does not reach in reasonable time; a short run each time, and KEEPER_LONG=1 KEEPER_HAMMER=1000000
//     for the long one.
//
// # Not covered
//
// The node of TestSenders and TestAllocations never reorganises and executes nothing: services/sender and test/e2e do.
// The broker is not disturbed here: pkg/kafka/bus does that.
package hammer
