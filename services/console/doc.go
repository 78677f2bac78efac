// Package console is the operators' process: what a keeper does beside its road, and what people are shown and told. No
// process of the road waits for it, and a keeper finds, sends and records without it.
package console
