// Package failover proves with real processes, on real windows, that the keepers of one venue take turns: three
// complete keepers that share nothing but an in-process chain lose the Master, lose two, lose all, get them back. Who
// executed what, how old it was and what came twice is read from the chain alone.
//
// It takes about half an hour and runs with KEEPER_FAILOVER=1 (`make failover`).
package failover
