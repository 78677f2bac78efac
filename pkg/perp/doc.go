// Package perp holds the types and rules of the exchange: what its events mean, what they leave behind (positions,
// orders, requests, markets, parameters), money as integers, and the rules over them: [Apply] folds one event into
// state, the exact risk formula judges a position.
//
// Everything here is pure: no node, no Kafka, no database, no clock. The same code runs in statevm (rows in Postgres),
// in the fold tool (rows in memory) and in the planner.
//
// Units, as on chain: USD and factors have 30 decimals; a price is USD with 30 decimals per smallest unit of the token
// (ETH at $5000 is 5·10^15, USDC at $1 is 10^24); amounts are in the token's smallest unit; times are Unix seconds
// unless a name ends in Ms.
package perp
