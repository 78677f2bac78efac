package evm

import (
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// noStateTexts are what nodes and providers answer, in lower case, when they do not have the state of a block: pruned,
// or not an archive's customer.
var noStateTexts = []string{
	"missing trie node", "header not found", "header for hash not found", "historical state", "state not available",
	"state is not available", "state is pruned",
	"state histories haven't been fully indexed", "state already been pruned", "has been pruned", "pruned history",
	"old data not available due to pruning",
	"ancestor state", "no state available", "state unavailable", "stale state",
	"distance to target block exceeds maximum proof window", "archive",
	"block is out of range", "unknown block", "could not find block", "block not found",
}

// NoState reports whether every endpoint that was asked answered that it does not have the state of the block. About a
// block near the head that passes; about one far below it, only an archive node helps. An endpoint that gave no answer
// may have it: then this is false.
func NoState(err error) bool {
	return everyAnswer(err, func(err error) bool {
		reply, is := errors.AsType[rpc.Error](err)
		if !is {
			return false
		}
		text := strings.ToLower(reply.Error())
		return !strings.HasPrefix(text, revertText) && containsAny(text, noStateTexts)
	})
}
