// Package source is what the plug-ins share that read services of price reports: one folder below this one each.
// Package sources lists them. Each is a price.Source.
//
//	kind        service                                        pushed by           proof (Report.Data)
//	devnet      the demo exchange's price service              server-sent events  what its oracle checks
//	gmx         GMX's signed price API                         –                   blob: the signed Data Streams report
//	streams     Chainlink Data Streams                         WebSocket           fullReport: the signed report
//	aggregator  a Chainlink aggregator contract, by eth_call   –                   none: the oracle reads the contract itself
//
// A source that is pushed to asks once for the newest reports when it connects, so that nothing waits for the next
// change. After a lost connection the devnet and streams sources replay what they missed; the others go on with the
// newest.
//
// What the exchange's provider makes of a price by a word of its own stands beside it (price.Report.Taken), and is what
// the price topic has: of streams, bid and ask taken towards each other (DATA_STREAM_SPREAD_REDUCTION_FACTOR); of
// an aggregator, all from the price to the one at which the token is taken to be stable (STABLE_PRICE). The words are
// read from the DataStore when a source begins, and each minute.
//
// # Guaranteed
//
//   - An answer that cannot be read is an error, or is passed to price.Take as an error, report by report; it is never
//     half a report.
//   - Prices are converted exactly; where the unit is too coarse, min is rounded down and max up (price.PerUnit).
//   - No error, log line or configuration print holds a credential or the secret parts of an address.
//
// # Not guaranteed
//
//   - Nothing is verified. Signatures are the oracle's business, and the prices of a source are judged by price.Feed.
//   - What the service of a gmx source has made of its prices is not known: they are taken as it gives them.
//   - The oracle of the exchange may round the same report's bid and ask in another way, by less than one unit of the
//     thirtieth decimal.
package source
