// Package bench measures what the pipeline can do: go test ./test/bench -run '^$' -bench Replay. Every figure stands
// beside a bare rate of the same machine measured in the same run, because on a shared machine only ratios mean
// something.
package bench
