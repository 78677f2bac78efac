package evm

import (
	"errors"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// replyKind is what a node's own error means for the endpoint, whatever was asked.
type replyKind int

const (
	replyOK        replyKind = iota // nothing
	replyThrottled                  // it wants fewer requests
	replyDisabled                   // it does not serve the method
)

// throttledTexts and disabledTexts are what nodes and providers answer, in lower case, anywhere in a message.
var (
	throttledTexts = []string{
		"rate limit", "rate-limit", "ratelimit", "too many requests", "request limit", "requests per second",
		"compute units per second", "exceeded the quota",
		"capacity exceeded", "throttle",
	}
	disabledTexts = []string{
		"method not found", "does not exist/is not available", "method is not supported", "method not supported",
		"unsupported method",
		"method is disabled", "method not allowed", "method is not available", "not whitelisted",
	}
)

const (
	codeLimit          = -32005
	codeMethodNotFound = -32601
)

// replyClass sorts a node's own error by its code and text. BSC's public nodes say a bare "limit exceeded" for
// eth_getLogs, which they do not serve.
func replyClass(method string, err error) replyKind {
	reply, is := errors.AsType[rpc.Error](err)
	if !is {
		return replyOK
	}
	const tooMany = 429
	switch code, text := reply.ErrorCode(), strings.ToLower(reply.Error()); {
	case strings.HasPrefix(text, revertText): // a contract may say anything
		return replyOK
	case code == tooMany, containsAny(text, throttledTexts):
		return replyThrottled
	case code == codeMethodNotFound, containsAny(text, disabledTexts):
		return replyDisabled
	case code == codeLimit && phraseAt(text, "limit exceeded") >= 0:
		if purposeOf(method) == ForLogs {
			return replyDisabled
		}
		return replyThrottled
	default:
		return replyOK
	}
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
