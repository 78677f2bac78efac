// Package bench measures what the pipeline can do: go test ./test/bench -run '^$' -bench Replay.
package bench
