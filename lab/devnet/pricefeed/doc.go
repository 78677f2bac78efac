// Package pricefeed is the demo exchange's price service: a seeded random walk per token, signed into reports the
// exchange's oracle accepts, served over HTTP. Prices can be shocked and pinned.
//
// All prices are integers in USD·10^30 per smallest unit of the token, as in the contracts: a token with 18 decimals at
// $5000 costs 5·10^15. A walk moves on a grid of one basis point of its base price to the power of an integer, so it
// never drifts by rounding and repeats exactly for a seed and a number of ticks.
//
// # HTTP
//
//	GET /v1/reports            the newest report of every token; 304 if that is still what If-None-Match names
//	GET /v1/reports?at=SECOND  of every token the first report at or after that Unix second; tokens without one yet are left out;
//	                           410 if the second is older than the 10 minutes of reports kept
//	GET /v1/stream             server-sent events, one per tick: the newest reports of every token at once, then each tick as it comes. An event's id is
//	                           its time in milliseconds; with a Last-Event-ID the ticks after that come first, so that neither a slow reader nor
//	                           one that lost its connection misses any of those kept
//
// Each answer, and the data of each event, is a JSON list of {token, provider, data, minPrice, maxPrice, timestampMs};
// prices are decimal strings.
package pricefeed
