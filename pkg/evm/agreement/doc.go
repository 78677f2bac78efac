// Package agreement decides what is believed when several endpoints are asked for the same fact. It is pure: it asks
// nobody, reads no clock, and knows neither JSON-RPC nor a venue.
//
// How many have to agree depends on what a wrong answer costs. A hint or a success takes one. A fact that ends a job,
// spends a nonce, books money or halts takes two that differ in host ([Required]): two addresses of one host are one
// source, whatever their ports and keys are. Where all endpoints share one host one is all there is, and the caller has
// to say so.
//
// # Guaranteed, while at most one host answers wrongly and two are required
//
//   - [Same], [AtLeast] and [Final] never return anything that no honest host said. A wrong, missing or late answer
//     makes a result lower, or keeps it from being decided.
//   - [LowerMedian] lies between two honest answers, or is below one, so that a single answer raises no price.
//   - [Heads] lets no single host move the clock ahead of what another one shows, by more than its tolerance.
//
// # Not guaranteed
//
//   - Anything, if two hosts answer wrongly in the same way, as two that forward to one node do.
package agreement
