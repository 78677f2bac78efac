package evm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/evm/agreement"
)

// Class is what the answer to a signed transaction asks of its sender.
type Class string

// The classes. All but Accepted, ResolveByHash and Ambiguous say that this try put the transaction into no pool; an
// earlier try may have. RetryElsewhere, FeeCapped, ConditionFailed and Reverted mean the same to the sender, which
// tries again: they are told apart for people.
const (
	Accepted Class = "accepted" // it is in the pool
	// ResolveByHash: the nonce is used up, perhaps by this very transaction: look for its receipt.
	ResolveByHash Class = "resolve_by_hash"
	// OtherTxAtNonce: the pool has another transaction at this nonce: bump from the dearest that is stored.
	OtherTxAtNonce  Class = "other_tx_at_nonce"
	BumpToMin       Class = "bump_to_min"      // cheaper than the node takes
	PauseSigner     Class = "pause_signer"     // funds ran out: claim nothing new, keep the nonce
	FatalPayload    Class = "fatal_payload"    // it can never be mined: cancel it at its nonce
	RetryElsewhere  Class = "retry_elsewhere"  // this node is full
	GapOrLimit      Class = "gap_or_limit"     // too many, or too far ahead: back-pressure
	FatalSigner     Class = "fatal_signer"     // the account is refused for good: pause the signer
	SerializeSigner Class = "serialize_signer" // one transaction of this account at a time
	FeeCapped       Class = "fee_capped"       // dearer than this node takes: offer no more
	ConditionFailed Class = "condition_failed" // a condition sent along does not hold
	Reverted        Class = "reverted"         // the node simulated it; see RevertData
	// Ambiguous: it may or may not be in a pool: keep it signed, send the same bytes again.
	Ambiguous Class = "ambiguous"
)

// sendTexts are what nodes and providers answer, in lower case, each as the beginning of a message or of what follows a
// prefix: those of BSC's own software, which geth and reth share, then those of Erigon (bsc-erigon), Nethermind and
// Besu where they differ.
var sendTexts = []struct {
	text  string
	class Class
}{
	{"nonce too low", ResolveByHash},
	{"already known", Accepted},
	{"bundle already exist", Accepted}, // of bnb-chain/bsc, core/txpool/bundlepool
	{"the transaction was added to the transaction pool but wasn't processed in", Accepted},
	{"replacement transaction underpriced", OtherTxAtNonce},
	{"transaction underpriced", BumpToMin},
	{"transaction gas price below minimum", BumpToMin},
	{"max fee per gas less than block base fee", BumpToMin},
	{"insufficient funds", PauseSigner}, // also "for gas * price + value" and "for transfer"
	{"intrinsic gas too low", FatalPayload},
	{"insufficient gas for floor data gas cost", FatalPayload},
	{"transaction gas limit too high", FatalPayload},
	{"exceeds block gas limit", FatalPayload},
	{"oversized data", FatalPayload},
	{"txpool is full", RetryElsewhere},
	{"future transaction tries to replace pending", GapOrLimit},
	{"account limit exceeded", GapOrLimit},
	{"nonce too high", GapOrLimit},
	{"sender or to in black list", FatalSigner},
	{"in-flight transaction limit reached for delegated accounts", SerializeSigner},
	{"gapped-nonce tx from delegated accounts", SerializeSigner},
	{"address already reserved", SerializeSigner},
	{"tx fee", FeeCapped}, // "(1.20 ether) exceeds the configured cap (1.00 ether)"
	{"blocknumbermax condition not met", ConditionFailed},
	{"timestampmax condition not met", ConditionFailed},
	{"storage slot value condition not met", ConditionFailed},
	{revertText, Reverted},

	// Erigon
	{"existing txn with same hash", Accepted},
	{"existing tx with same hash", Accepted},
	{"could not replace existing tx", OtherTxAtNonce},
	{"underpriced", BumpToMin},
	{"fee too low", BumpToMin},
	{"intrinsicgas", FatalPayload},
	{"gasuintoverflow", FatalPayload},
	{"rlptoolong", FatalPayload},
	{"gas limit is too high", FatalPayload},
	{"pending sub-pool is full", RetryElsewhere},
	{"basefee sub-pool is full", RetryElsewhere},
	{"queued sub-pool is full", RetryElsewhere},
	{"spammer", GapOrLimit}, // too many of this account

	// Nethermind
	{"oldnonce", ResolveByHash},
	{"alreadyknown", Accepted},
	{"replacementnotallowed", OtherTxAtNonce},
	{"ownnoncealreadyused", OtherTxAtNonce},
	{"feetoolow", BumpToMin},
	{"feetoolowtocompete", BumpToMin},
	{"insufficientfunds", PauseSigner},
	{"gaslimitexceeded", FatalPayload},
	{"noncegap", GapOrLimit},
	{"noncetoofarinfuture", GapOrLimit},

	// Besu
	{"known transaction", Accepted},
	{"gas price below configured minimum gas price", BumpToMin},
	{"gas price below current base fee", BumpToMin},
	{"upfront cost exceeds account balance", PauseSigner},
	{"intrinsic gas exceeds gas limit", FatalPayload},
	{"transaction gas limit exceeds block gas limit", FatalPayload},
	{"transaction nonce is too distant", GapOrLimit},
	{"transaction fee cap exceeded", FeeCapped},
}

// SendClass sorts the outcome of SendRaw. Only a node's own error with a known text means anything; everything else
// that is not nil is Ambiguous. Of several endpoints' answers ResolveByHash counts most, then the first, in the order
// of the configuration, that is not Ambiguous. FatalPayload counts only where two hosts say it, or the only one there
// is: it ends a job, and a provider may have a limit of its own. FatalSigner counts only where all say it: an endpoint
// may have a black list of its own, and what another one would have said had it answered nobody knows.
func SendClass(err error) Class {
	if err == nil {
		return Accepted
	}
	if all, is := errors.AsType[*refusals](err); is {
		return mostTelling(all.answers)
	}
	if reply, is := errors.AsType[rpc.Error](err); is {
		return classOf(reply.Error())
	}
	return Ambiguous
}

// Words are what the nodes themselves said to a transaction that none of them took, for people: how each that answered
// at all refused it, with its host, and without secrets. Empty where nobody refused it: it was taken, or nobody
// answered.
func Words(err error) string {
	all, is := errors.AsType[*refusals](err)
	if !is {
		return ""
	}
	var said []string
	for _, a := range all.answers {
		if words := a.words(); words != "" && !slices.Contains(said, words) {
			said = append(said, words)
		}
	}
	slices.Sort(said) // the same words in the same order, whoever was asked first
	return strings.Join(said, "; ")
}

// words are empty where the endpoint did not answer. A gateway that turns the request away (4xx) has answered.
func (a hostAnswer) words() string {
	failed, is := errors.AsType[*callError](a.err)
	if !is {
		return ""
	}
	status, _ := errors.AsType[httpError](failed.err)
	if _, own := errors.AsType[rpc.Error](failed.err); !own && status.reply.StatusCode/100 != 4 {
		return ""
	}
	return fmt.Sprintf("%s says %q", a.host, brief(scrub(failed.err.Error(), failed.endpoint)))
}

func mostTelling(answers []hostAnswer) Class {
	count := map[Class]int{}
	hosts, never := map[string]bool{}, map[string]bool{} // all, and those that say that it can never be mined
	for _, a := range answers {
		class := SendClass(a.err)
		count[class]++
		hosts[a.host] = true
		if class == FatalPayload {
			never[a.host] = true
		}
	}
	switch {
	case count[ResolveByHash] > 0:
		return ResolveByHash
	case len(answers) > 0 && count[FatalSigner] == len(answers):
		return FatalSigner
	}
	for _, a := range answers {
		switch class := SendClass(a.err); class {
		case Ambiguous, FatalSigner:
		case FatalPayload:
			if len(never) >= agreement.Required(len(hosts)) {
				return class
			}
		default:
			return class
		}
	}
	return Ambiguous
}

// classOf finds the known text that begins first: what follows may quote anything, such as a contract's reason for a
// revert.
func classOf(message string) Class {
	message = strings.ToLower(message)
	first, class := len(message), Ambiguous
	for _, known := range sendTexts {
		if at := phraseAt(message, known.text); at >= 0 && at < first {
			first, class = at, known.class
		}
	}
	return class
}

// phraseAt finds a phrase at the beginning of a message or behind a prefix ("x: "), as whole words, or returns -1. In
// the middle of a sentence it may mean the opposite.
func phraseAt(message, phrase string) int {
	for from := 0; ; {
		at := strings.Index(message[from:], phrase)
		if at < 0 {
			return -1
		}
		at += from
		next, _ := utf8.DecodeRuneInString(message[at+len(phrase):])
		if (at == 0 || strings.HasSuffix(message[:at], ": ")) && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return at
		}
		from = at + 1
	}
}
