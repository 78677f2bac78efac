// Package preflight decides whether a job is still to be done, and with which call: is what this process knows of now
// (the freshness gate, TIER-8), is the job pending in our own state (TIER-4), which price reports fit it (TIER-14),
// would the venue do it (a simulated call, LIQ-7), and how much gas it takes. Afterwards it finds what a mined
// transaction did to its job.
//
// It knows the venue, and neither nonces nor whose turn a job is.
//
// Guaranteed: a job goes on by a single success; it ends by what our own state shows, or by what two endpoints at
// different hosts say where there are two (TIER-5). What nobody could be asked, and what nobody understands, ends
// nothing. Not guaranteed: that a call that passes here is mined; the state it rests on may leave the chain.
package preflight
