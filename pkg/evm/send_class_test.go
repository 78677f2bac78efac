package evm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/setting/secret"
)

// sendAnswers are the texts of nodes and providers, complete, with what is known to follow them.
var sendAnswers = []struct {
	text  string
	class evm.Class
}{
	{"nonce too low", evm.ResolveByHash},
	{"nonce too low: next nonce 8, tx nonce 7", evm.ResolveByHash},
	{"already known", evm.Accepted},
	{"replacement transaction underpriced", evm.OtherTxAtNonce},
	{"transaction underpriced", evm.BumpToMin},
	{"transaction underpriced: gas tip cap 1, minimum needed 50000000", evm.BumpToMin},
	{"transaction gas price below minimum: gas tip cap 0, minimum needed 1", evm.BumpToMin},
	{"insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000", evm.PauseSigner},
	{"intrinsic gas too low: gas 20999, minimum needed 21000", evm.FatalPayload},
	{"insufficient gas for floor data gas cost: gas 21000, minimum needed 21040", evm.FatalPayload},
	{"transaction gas limit too high (cap: 16777216, tx: 20000000)", evm.FatalPayload},
	{"exceeds block gas limit", evm.FatalPayload},
	{"txpool is full", evm.RetryElsewhere},
	{"future transaction tries to replace pending", evm.GapOrLimit},
	{"account limit exceeded: pooled 200 txs", evm.GapOrLimit},
	{"nonce too high: tx nonce 900, gapped 800", evm.GapOrLimit},
	{"sender or to in black list", evm.FatalSigner},
	{"in-flight transaction limit reached for delegated accounts", evm.SerializeSigner},
	{"gapped-nonce tx from delegated accounts", evm.SerializeSigner},
	{"address already reserved", evm.SerializeSigner},
	{"BlockNumberMax condition not met", evm.ConditionFailed},
	{"TimestampMax condition not met", evm.ConditionFailed},
	{"storage slot value condition not met", evm.ConditionFailed},
	{"the transaction was added to the transaction pool but wasn't processed in 2s", evm.Accepted},
	{"tx fee (1.20 ether) exceeds the configured cap (1.00 ether)", evm.FeeCapped},

	{"INTERNAL_ERROR: insufficient funds", evm.PauseSigner},
	{"FEE_TOO_LOW: underpriced", evm.BumpToMin},
	{"INTERNAL_ERROR: could not replace existing tx", evm.OtherTxAtNonce},
	{"ALREADY_EXISTS: existing txn with same hash", evm.Accepted},
	{"INTERNAL_ERROR: pending sub-pool is full", evm.RetryElsewhere},
	{"INTERNAL_ERROR: baseFee sub-pool is full", evm.RetryElsewhere},
	{"INTERNAL_ERROR: IntrinsicGas", evm.FatalPayload},
	{"INTERNAL_ERROR: nonce too low", evm.ResolveByHash},

	{"OldNonce, Current nonce: 5, nonce of rejected tx: 3", evm.ResolveByHash},
	{"AlreadyKnown", evm.Accepted},
	{"ReplacementNotAllowed", evm.OtherTxAtNonce},
	{"FeeTooLow, EffectivePriorityFeePerGas too low 1 < 2, BaseFee: 0", evm.BumpToMin},
	{"FeeTooLowToCompete", evm.BumpToMin},
	{"InsufficientFunds, Account balance: 0, cumulative cost: 21000", evm.PauseSigner},
	{"NonceGap, Future nonce. Expected nonce: 7", evm.GapOrLimit},

	{"Known transaction", evm.Accepted},
	{"Upfront cost exceeds account balance", evm.PauseSigner},
	{"Transaction fee cap exceeded", evm.FeeCapped},

	{"sorry, insufficient funds", evm.Ambiguous},
	{"execution reverted", evm.Reverted},
	{"execution reverted: already known", evm.Reverted}, // a contract may say anything
	{"rate limit", evm.Ambiguous},
	{"limit exceeded", evm.Ambiguous},
	{"request timed out", evm.Ambiguous},
	{"EOF", evm.Ambiguous},
	{"read tcp 10.0.0.1:443: connection reset by peer", evm.Ambiguous},
	{"no backend is currently healthy", evm.Ambiguous},
	{"method eth_sendRawTransaction in batch triggered rate limit", evm.Ambiguous},
	{"transaction not already known", evm.Ambiguous}, // in the middle of a sentence it means something else
	{"already knownish", evm.Ambiguous},
	{"", evm.Ambiguous},
}

// Every known text, bare, behind prefixes, in any case, as a node's error reply.
func TestSendClasses(t *testing.T) {
	node := startAnswering(t)
	c := dial(t, node.config())
	for _, a := range sendAnswers {
		for form, text := range map[string]string{
			"bare": a.text, "prefixed": "x: " + a.text, "prefixed twice": "upstream: err: " + a.text,
			"upper case": strings.ToUpper(a.text),
			"both":       "RPC: " + strings.ToUpper(a.text), "id null": a.text,
		} {
			if node.refuse(text); form == "id null" {
				quoted, _ := json.Marshal(text)
				node.serve(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":`+
						string(quoted)+`}}`)
				})
			}
			err := c.SendRaw(t.Context(), []byte{1})
			if got := evm.SendClass(err); got != a.class {
				t.Errorf("%s %q: %s, want %s", form, text, got, a.class)
			}
		}
	}
}

func TestAcceptedIsNoError(t *testing.T) {
	node := startAnswering(t)
	c := dial(t, node.config())
	node.refuse("already known")
	if err := c.SendRaw(t.Context(), []byte{1}); err != nil {
		t.Error(err)
	}
	if evm.SendClass(nil) != evm.Accepted {
		t.Error("nil is not accepted")
	}
}

// What is no reply of a node is ambiguous, whatever its text.
func TestNoReplyIsAmbiguous(t *testing.T) {
	node := startAnswering(t)
	cfg := node.config()
	cfg.RequestTimeout = 300 * time.Millisecond
	c := dial(t, cfg)
	for name, handler := range map[string]http.HandlerFunc{
		"a cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"HTTP 429": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "already known", http.StatusTooManyRequests)
		},
		"HTTP 500": status(http.StatusInternalServerError,
			`{"error":{"code":-32000,"message":"transaction underpriced"}}`),
		"a timeout": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"HTTP 503": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "nonce too low", http.StatusServiceUnavailable)
		},
		"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "nonce too low") },
		"another hash": func(w http.ResponseWriter, r *http.Request) { respond(w, r, `"result":"0x01"`) },
		"an answer to another request": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"nonce too low"}}`)
		},
	} {
		node.handler.Store(&handler)
		if err := c.SendRaw(t.Context(), []byte{1}); evm.SendClass(err) != evm.Ambiguous {
			t.Errorf("%s: %s of %v", name, evm.SendClass(err), err)
		}
	}
	for _, err := range []error{errors.New("nonce too low"), context.DeadlineExceeded, io.EOF} {
		if evm.SendClass(err) != evm.Ambiguous {
			t.Errorf("%v is %s", err, evm.SendClass(err))
		}
	}
}

// Several endpoints: one acceptance is enough; nothing is certain while one did not answer.
func TestSendToSeveral(t *testing.T) {
	const down = "down"
	for _, tt := range []struct {
		answers []string
		class   evm.Class
	}{
		{[]string{down, "already known"}, evm.Accepted},
		{[]string{"txpool is full", "already known"}, evm.Accepted},
		{[]string{"txpool is full", "transaction underpriced"}, evm.RetryElsewhere},
		{[]string{down, "transaction underpriced"}, evm.BumpToMin},
		{[]string{"transaction underpriced", down}, evm.BumpToMin},
		{[]string{"transaction underpriced", "nonce too low"}, evm.ResolveByHash},
		{[]string{down, down}, evm.Ambiguous},
		{[]string{"sender or to in black list", "sender or to in black list"}, evm.FatalSigner},
		{[]string{"sender or to in black list", down}, evm.Ambiguous},
		{[]string{"sender or to in black list", "txpool is full"}, evm.RetryElsewhere},
		{[]string{"exceeds block gas limit", down}, evm.Ambiguous},
		{[]string{"exceeds block gas limit", down, "sender or to in black list"}, evm.Ambiguous},
		{[]string{"exceeds block gas limit", "txpool is full"}, evm.RetryElsewhere},
		{[]string{"exceeds block gas limit", down, "intrinsic gas too low"}, evm.FatalPayload},
	} {
		cfg := evm.DefaultConfig()
		cfg.URLs = nil
		for _, answer := range tt.answers {
			node := startAnswering(t)
			cfg.URLs = append(cfg.URLs, node.config().URLs...)
			node.refuse(answer)
			if answer == down {
				abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
				node.handler.Store(&abort)
			}
		}
		err := dial(t, cfg).SendRaw(t.Context(), []byte{1})
		if got := evm.SendClass(err); got != tt.class {
			t.Errorf("%v: %s, want %s", tt.answers, got, tt.class)
		}
	}
}

// Two addresses of one provider have one word: what its limit refuses may be mined by another's help.
func TestSendToOneHostTwice(t *testing.T) {
	provider, other := startAnswering(t), startAnswering(t)
	cfg := provider.config()
	second := secret.MustURL(cfg.URLs[0].Reveal() + "/second")
	cfg.URLs = append(cfg.URLs, second, other.config().URLs[0])
	provider.refuse("exceeds block gas limit")
	abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	other.handler.Store(&abort)
	if err := dial(t, cfg).SendRaw(t.Context(), []byte{1}); evm.SendClass(err) != evm.Ambiguous {
		t.Errorf("beside one that is down: %s of %v", evm.SendClass(err), err)
	}
	cfg.URLs = cfg.URLs[:2]
	if err := dial(t, cfg).SendRaw(t.Context(), []byte{1}); evm.SendClass(err) != evm.FatalPayload {
		t.Errorf("where there is no other: %s of %v", evm.SendClass(err), err)
	}
}

func TestRevertData(t *testing.T) {
	node := startAnswering(t)
	c := dial(t, node.config())
	for _, tt := range []struct {
		reply    string
		reverted bool
		data     string
	}{
		{`{"code":3,"message":"execution reverted","data":"0xdeadbeef"}`, true, "deadbeef"},
		{`{"code":3,"message":"execution reverted: EmptyOrder","data":"0x16307797"}`, true, "16307797"},
		{`{"code":-32000,"message":"execution reverted"}`, true, ""},
		{`{"code":-32015,"message":"VM: execution reverted","data":"Reverted 0x16307797"}`, true, "16307797"},
		{`{"code":3,"message":"execution reverted","data":{"originalError":1}}`, true, ""},
		{`{"code":-32000,"message":"header not found","data":"0xdeadbeef"}`, false, ""},
	} {
		node.reply(tt.reply)
		_, err := c.Call(t.Context(), emitter, nil, [32]byte{1})
		if data, reverted := evm.RevertData(err); reverted != tt.reverted || fmt.Sprintf("%x", data) != tt.data {
			t.Errorf("%s: %x, %t", tt.reply, data, reverted)
		}
	}
	if _, reverted := evm.RevertData(errors.New("execution reverted")); reverted {
		t.Error("a revert that no node reported")
	}
}

// Whose word an error is, and whether it is that the gas of a call was not enough.
func TestWhoseWordAndOutOfGas(t *testing.T) {
	one, other := startAnswering(t), startAnswering(t)
	c := dial(t, one.config())
	for reply, out := range map[string]bool{
		`{"code":-32000,"message":"err: out of gas (supplied gas 6000000)"}`:           true,
		`{"code":-32000,"message":"intrinsic gas too low: have 100, want 21000"}`:      true,
		`{"code":3,"message":"execution reverted","data":"0x16307797"}`:                false,
		`{"code":-32000,"message":"header not found"}`:                                 false,
		`{"code":-32000,"message":"insufficient funds for gas * price + value"}`:       false,
		`{"code":-32000,"message":"insufficient gas for floor data gas cost: have 1"}`: true,
	} {
		one.reply(reply)
		_, err := c.Call(t.Context(), emitter, nil, [32]byte{1})
		from, is := evm.Answered(err)
		if evm.OutOfGas(err) != out || !is || from != c.Endpoints()[0].Source {
			t.Errorf("%s: out of gas %t, said by %q, %t", reply, evm.OutOfGas(err), from, is)
		}
	}
	one.reply(`{"code":-32000,"message":"header not found"}`)
	other.reply(`{"code":-32000,"message":"out of gas"}`)
	cfg := one.config()
	cfg.URLs = append(cfg.URLs, other.config().URLs...)
	_, err := dial(t, cfg).Call(t.Context(), emitter, nil, [32]byte{1})
	if _, is := evm.Answered(err); is || !evm.OutOfGas(err) {
		t.Errorf("both were asked, and one said that it ran out of gas: %v", err)
	}
	if _, is := evm.Answered(errors.New("out of gas")); is || evm.OutOfGas(errors.New("out of gas")) {
		t.Error("a word that no node gave")
	}
}

// answering is a fake node on chain 1337 that answers everything else in one way.
type answering struct {
	*httptest.Server
	handler atomic.Pointer[http.HandlerFunc]
}

func startAnswering(t *testing.T) *answering {
	t.Helper()
	a := &answering{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if handler := a.handler.Load(); handler != nil && !strings.Contains(string(body), `"eth_chainId"`) {
			(*handler)(w, r)
			return
		}
		respond(w, r, `"result":"0x539"`)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *answering) config() evm.Config {
	cfg := evm.DefaultConfig()
	cfg.URLs = append(cfg.URLs[:0:0], mustURL(a.URL))
	return cfg
}

// serve makes the node answer everything but for its chain in one way.
func (a *answering) serve(how http.HandlerFunc) { a.handler.Store(&how) }

func (a *answering) refuse(text string) {
	quoted, _ := json.Marshal(text)
	a.reply(`{"code":-32000,"message":` + string(quoted) + `}`)
}

// reply answers with a JSON-RPC error object.
func (a *answering) reply(object string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r, `"error":`+object) })
	a.handler.Store(&handler)
}

// respond writes an answer to a request that is no batch.
func respond(w io.Writer, r *http.Request, member string) {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, request.ID, member)
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
}
