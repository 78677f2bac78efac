package evm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/setting/secret"
)

// failure is why a request got no usable answer, as the class label of evm_request_errors_total.
type failure string

const (
	failedReply     failure = "reply"     // the node answered with an error
	failedTimeout   failure = "timeout"   // no answer in time
	failedTransport failure = "transport" // no connection, or it was cut
	failedHTTP      failure = "http"      // an HTTP status instead of an answer
	failedThrottled failure = "throttled" // the node or its gateway wants fewer requests
	failedMalformed failure = "malformed" // an answer that cannot be read
	failedLie       failure = "lie"       // an answer that contradicts itself, or what was asked
	// failedNotFound: the node does not have the block; no fault of the endpoint, and not counted.
	failedNotFound   failure = "not_found"
	failedWrongChain failure = "wrong_chain" // the endpoint belongs to another chain
	failedUnproven   failure = "unproven"    // the endpoint refuses to say which chain it belongs to
	abandoned        failure = "abandoned"   // the caller did not wait; no fault of the endpoint, and not counted
)

// callError is which endpoint failed a request, and why. Its text never holds a secret of the endpoint's address.
type callError struct {
	endpoint secret.URL
	source   Source
	method   string
	class    failure
	err      error
}

func (e *callError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.endpoint, e.method, scrub(e.err.Error(), e.endpoint))
}

func (e *callError) Unwrap() error { return e.err }

// about is what an endpoint is excluded for that has lied.
func (e *callError) about() Purpose {
	told, is := errors.AsType[*lieError](e.err)
	if is && told.about != "" {
		return told.about
	}
	return purposeOf(e.method)
}

// scrub masks the parts of an address in a text: nodes and gateways like to repeat them ("cannot POST /v3/…", "unknown
// key …").
func scrub(text string, at secret.URL) string { return secret.Scrubber(at.Reveal()).Replace(text) }

// classify finds the class of what the JSON-RPC client returned, and strips what could be secret or endless from it.
func classify(err error) (failure, error) {
	if WrongChain(err) {
		return failedWrongChain, err
	}
	if _, is := errors.AsType[*unprovenError](err); is {
		return failedUnproven, err
	}
	if _, is := errors.AsType[*malformedError](err); is {
		return failedMalformed, err
	}
	if _, is := errors.AsType[*lieError](err); is {
		return failedLie, err
	}
	if long, is := errors.AsType[*http.MaxBytesError](err); is {
		return failedMalformed, malformed("the answer is longer than %d bytes", long.Limit)
	}
	if NotFound(err) {
		return failedNotFound, err
	}
	if _, is := errors.AsType[rpc.Error](err); is {
		return failedReply, err
	}
	if status, is := errors.AsType[rpc.HTTPError](err); is {
		if status.StatusCode == http.StatusTooManyRequests {
			return failedThrottled, httpError{status}
		}
		return failedHTTP, httpError{status}
	}
	if wrapped, is := errors.AsType[*url.Error](err); is { // its text repeats the whole address
		err = wrapped.Err
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() ||
		errors.Is(err, context.DeadlineExceeded) {
		return failedTimeout, err
	}
	return failedTransport, err
}

// httpError is a status with only the beginning of the page that came with it.
type httpError struct{ reply rpc.HTTPError }

func (e httpError) Error() string {
	return strings.TrimSuffix("HTTP "+e.reply.Status+meaning(e.reply.StatusCode)+": "+brief(string(e.reply.Body)), ": ")
}

// meaning is what a status says of an endpoint, for people; empty where it says it itself.
func meaning(status int) string {
	switch {
	case status >= 300 && status < 400:
		return " (it points elsewhere, and is not followed: correct the address in chain.urls)"
	case status == http.StatusUnauthorized:
		return " (its key is missing, wrong or no longer valid)"
	case status == http.StatusPaymentRequired:
		return " (the plan is used up or not paid for)"
	case status == http.StatusForbidden:
		return " (the key, the plan or this machine's address is not let in)"
	case status == http.StatusNotFound:
		return " (there is no such path or key)"
	case status == http.StatusTooManyRequests:
		return " (it wants fewer requests)"
	case status >= http.StatusInternalServerError:
		return " (the provider is out of order)"
	}
	return ""
}

// brief is the beginning of a text from outside, in one line.
func brief(text string) string {
	const enough = 160
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}

// malformedError is an answer that is none.
type malformedError struct{ text string }

func (e *malformedError) Error() string { return e.text }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

// lieError is an answer that contradicts itself, or what was asked. No honest node gives it, whatever its state.
type lieError struct {
	text  string
	about Purpose // what it says nothing true of, where that is less than what the method is for
}

func (e *lieError) Error() string { return e.text }

func lie(format string, args ...any) error {
	return &lieError{text: fmt.Sprintf(format, args...)}
}

// bodyLie is a lie about the transactions of a block, whose header is right.
func bodyLie(format string, args ...any) error {
	return &lieError{fmt.Sprintf(format, args...), ForBodies}
}

// wrongChainError reports that an endpoint belongs to another chain than the configured one.
type wrongChainError struct{ text string }

func (e *wrongChainError) Error() string { return e.text }

// WrongChain reports whether an error says that every endpoint belongs to another chain than the configured one.
// Waiting does not mend that.
func WrongChain(err error) bool {
	return everyAnswer(err, func(err error) bool {
		_, is := errors.AsType[*wrongChainError](err)
		return is
	})
}

// notFoundError reports that a node does not have a block: not yet, or not any more.
type notFoundError struct{ what string }

func (e *notFoundError) Error() string { return e.what + " is not known to the node" }

// NotFound reports whether an error says that the node does not have the block that was asked for: not yet, or not any
// more.
func NotFound(err error) bool {
	_, is := errors.AsType[*notFoundError](err)
	return is
}

// Refused reports whether every endpoint that was asked answered with an error of its own: it was reached, and does not
// do what was asked.
func Refused(err error) bool {
	return everyAnswer(err, func(err error) bool {
		failed, is := errors.AsType[*callError](err)
		return is && failed.class == failedReply
	})
}

// Answered returns the endpoint whose error this is; false where several were asked and failed, or none was.
func Answered(err error) (from Source, is bool) {
	failed, is := errors.AsType[*callError](err)
	if _, several := errors.AsType[*exhaustedError](err); several || !is {
		return "", false
	}
	return failed.source, true
}

// OutOfGas reports whether an endpoint's answer is that a call ran out of the gas it was given, before any contract
// could say so itself.
func OutOfGas(err error) bool {
	all, several := errors.AsType[*exhaustedError](err)
	if several {
		return slices.ContainsFunc(all.answers, OutOfGas)
	}
	reply, is := errors.AsType[rpc.Error](err)
	return is && containsAny(strings.ToLower(reply.Error()), outOfGasTexts)
}

// outOfGasTexts are what nodes say then, in lower case, anywhere in a message.
var outOfGasTexts = []string{"out of gas", "outofgas", "intrinsic gas too low",
	"insufficient gas for floor data gas cost"}

// exhaustedError holds why each endpoint that was asked gave no usable answer, in the order in which they were asked.
type exhaustedError struct{ answers []error }

func (e *exhaustedError) Error() string { return errors.Join(e.answers...).Error() }

func (e *exhaustedError) Unwrap() []error { return e.answers }

// exhausted joins the failures of several endpoints.
func exhausted(answers []error) error {
	if len(answers) == 1 {
		return answers[0]
	}
	return &exhaustedError{answers}
}

// everyAnswer reports whether all endpoints failed in one way.
func everyAnswer(err error, is func(error) bool) bool {
	all, several := errors.AsType[*exhaustedError](err)
	if !several {
		return is(err)
	}
	return !slices.ContainsFunc(all.answers, func(err error) bool { return !is(err) })
}

// isFinal reports whether asking another endpoint cannot help: the contract itself reverted, or nobody waits any more.
func isFinal(err error) bool {
	failed, is := errors.AsType[*callError](err)
	if is && failed.class == abandoned {
		return true
	}
	_, reverted := RevertData(err)
	return reverted
}

const revertText = "execution reverted"

// RevertData reports whether an error is a node's word that a call was reverted, and returns the bytes the contract
// gave as the reason. They may be empty: contracts may give none, and some nodes leave them out.
func RevertData(err error) (data []byte, reverted bool) {
	reply, is := errors.AsType[rpc.Error](err)
	if !is || reply.ErrorCode() != 3 && phraseAt(strings.ToLower(reply.Error()), revertText) < 0 {
		return nil, false
	}
	with, is := errors.AsType[rpc.DataError](err)
	if !is {
		return nil, true
	}
	text, _ := with.ErrorData().(string)
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "Reverted "), "0x") // older nodes write "Reverted 0x…"
	if data, err = hex.DecodeString(digits); err != nil {
		return nil, true
	}
	return data, true
}
