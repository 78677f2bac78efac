// Package hammer proves that however senders are treated, no nonce is given to two jobs, no job is executed twice, none
// is lost, and the nonces have no gap in the end (NON-1, NON-2, NON-14). Three processes share one signer. They are
// frozen past the end of their leases and woken, killed and started again, and their requests to the database and to
// the node are lost before or after they were heard. What happened is read from the chain and from the rows.
//
// The sender is as it is shipped, with Kafka, on a node that mines at once. `make hammer` takes about a minute;
// KEEPER_HAMMER=n makes it n jobs.
//
// # Not covered
//
// The node never reorganises and executes nothing: services/sender and test/e2e do.
// The broker is not disturbed here: pkg/kafka/bus does that.
package hammer
