package evm

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// LogsClass is what an answer to eth_getLogs asks of the one who asked.
type LogsClass string

// The classes.
const (
	// LogsShrink: the range is too wide: ask for at most Limit blocks, for fewer where Limit is 0.
	LogsShrink    LogsClass = "shrink"
	LogsSuggested LogsClass = "suggested" // the node names a range that should work: From to To
	LogsHalve     LogsClass = "halve"     // too many logs: halve the range; of a single block take the receipts
	LogsSplit     LogsClass = "split"     // too many addresses or topics: split the filter
	LogsDisabled  LogsClass = "disabled"  // the node does not serve eth_getLogs at all
	LogsThrottled LogsClass = "throttled" // too many requests: back off
	LogsElsewhere LogsClass = "elsewhere" // no answer, or an unknown one: ask another endpoint
)

// LogsVerdict is a class with the numbers that go with it.
type LogsVerdict struct {
	Class LogsClass
	// Limit is how many blocks may be asked for, of LogsShrink and LogsSuggested; 0 if the node did not say. Some nodes
	// count the last block and some do not: where Limit blocks are refused with Limit, one fewer is meant.
	Limit uint64
	// From and To are the blocks that should work, From the lower one.
	From, To uint64
}

// SortLogsAnswer sorts a failed eth_getLogs. Codes alone say little: -32005 stands for a method that is switched off,
// for too many requests and for too many results. The text decides, in any case and behind any prefix; what it does not
// decide goes elsewhere.
func SortLogsAnswer(err error) LogsVerdict {
	if reply, is := errors.AsType[rpc.Error](err); is {
		return logsVerdict(reply.ErrorCode(), reply.Error())
	}
	if page, is := errors.AsType[httpError](err); is {
		return pageVerdict(page.reply)
	}
	if page, is := errors.AsType[rpc.HTTPError](err); is {
		return pageVerdict(page)
	}
	return LogsVerdict{Class: LogsElsewhere}
}

// pageVerdict sorts an HTTP status. Gateways put the node's own error behind statuses such as 400 and 413.
func pageVerdict(page rpc.HTTPError) LogsVerdict {
	const tooMany, serverErrors = 429, 500
	switch {
	case page.StatusCode == tooMany:
		return LogsVerdict{Class: LogsThrottled}
	case page.StatusCode >= serverErrors:
		return LogsVerdict{Class: LogsElsewhere}
	}
	var body struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(page.Body, &body) != nil {
		return LogsVerdict{Class: LogsElsewhere}
	}
	return logsVerdict(body.Error.Code, body.Error.Message)
}

// count is a number of blocks as providers write it: 10000, 10,000, 10k.
const count = `([0-9][0-9,_]*k?)`

// suggestions name a range that should work.
var suggestions = regexp.MustCompile(
	`(?:this block range should work:|try with this block range|retry with the range)\s*\[?\s*` +
		`(0x[0-9a-f]+|[0-9]+)\s*(?:,|-|to|\.\.)\s*(0x[0-9a-f]+|[0-9]+)`)

// limits say how many blocks may be asked for.
var limits = compile(
	`exceed(?:s|ed)? maximum block range:? *`+count,
	`limited to (?:a )?`+count+` (?:blocks? )?(?:range|blocks?)`,
	`maximum \[from, to\] blocks distance:? *`+count,
	`up to (?:a )?`+count+` block range`,
	`max range:? *`+count,
	`maximum allowed number of requested blocks is `+count,
	`exceeds the range allowed for your plan \([0-9,]+ > `+count+`\)`,
	`limit the query to at most `+count+` blocks`,
	`ranges over `+count+` blocks are not supported`,
	`range is too large, max is `+count,
	`exceeds max block range `+count, // reth
	`limited to 0 - `+count+` blocks? range`,
)

// tooWide say that the range is too wide, but not by how much.
var tooWide = []string{
	"exceed maximum block range", "exceeds max block range", "block range is too wide",
	"requested range exceeds maximum", // Besu
	"block range too large", "block range limit exceeded", "range limit exceeded",
	"range threshold exceeded",
	"range is too large", "exceeds the range allowed",
}

// tooMuch say that the answer would be too long.
var tooMuch = compile(
	`query returned more than `+count+` results`,
	`query exceeds max results`,
	`logs matched by query exceeds limit`,
	`response size should not (?:be )?greater than`,
	`backend response too large`,
	`response is too big`,
)

// tooWideFilter say that too many addresses or topics were asked for.
var tooWideFilter = compile(
	`exceed max addresses or topics per search position`,
	`this query contains [0-9,]+ filters`,
)

func compile(patterns ...string) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		list[i] = regexp.MustCompile(p)
	}
	return list
}

// logsVerdict tests for the most telling texts first: a suggestion comes with a limit or a number of results, and
// "limit exceeded" is part of texts that mean something else.
func logsVerdict(code int, text string) LogsVerdict {
	text = strings.ToLower(text)
	limit, limited := limitIn(text)
	if m := suggestions.FindStringSubmatch(text); m != nil {
		if v, is := suggested(m[1], m[2]); is {
			v.Limit = limit
			return v
		}
	}
	if limited {
		return LogsVerdict{Class: LogsShrink, Limit: limit}
	}
	switch {
	case containsAny(text, tooWide):
		return LogsVerdict{Class: LogsShrink}
	case matchesAny(text, tooMuch):
		return LogsVerdict{Class: LogsHalve}
	case matchesAny(text, tooWideFilter):
		return LogsVerdict{Class: LogsSplit}
	}
	switch replyClassOf(code, methodLogs, text) {
	case replyThrottled:
		return LogsVerdict{Class: LogsThrottled}
	case replyDisabled:
		return LogsVerdict{Class: LogsDisabled}
	default:
		return LogsVerdict{Class: LogsElsewhere}
	}
}

// limitIn finds how many blocks a text says may be asked for.
func limitIn(text string) (limit uint64, found bool) {
	for _, r := range limits {
		if m := r.FindStringSubmatch(text); m != nil {
			return blocks(m[1]), true
		}
	}
	return 0, false
}

func suggested(a, b string) (LogsVerdict, bool) {
	from, errFrom := strconv.ParseUint(a, 0, 64)
	to, errTo := strconv.ParseUint(b, 0, 64)
	return LogsVerdict{Class: LogsSuggested, From: min(from, to), To: max(from, to)}, errFrom == nil && errTo == nil
}

// blocks reads a count; 0 if it is none that makes sense.
func blocks(text string) uint64 {
	digits, thousands := strings.CutSuffix(text, "k")
	n, err := strconv.ParseUint(strings.NewReplacer(",", "", "_", "").Replace(digits), 10, 32)
	if err != nil {
		return 0
	}
	if thousands {
		return n * 1000
	}
	return n
}

func matchesAny(text string, patterns []*regexp.Regexp) bool {
	for _, p := range patterns {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
