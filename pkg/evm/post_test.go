package evm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"
)

// answeringWith serves one body to every request.
func answeringWith(t *testing.T, body string) *poster {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return &poster{url: server.URL, http: server.Client()}
}

// What an answer to one request comes to. The first id is 1.
func TestOneAnswer(t *testing.T) {
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":"0x1"}`:                              `"0x1"`,
		"\n" + `{"result" : {"a":["}","\"]\\"]} , "id":1,"other":[{}]}` + "\n": `{"a":["}","\"]\\"]}`,
		`{"id":1,"result":null}`:                                               `null`,
		`{"id":1,"result":null,"error":{"code":-3,"message":"no"}}`:            "-3 no",
		`{"id":null,"error":{"code":-3,"message":"no"}}`:                       "-3 no",
		`{"error":{"code":-3,"message":"no"}}`:                                 "-3 no",
		`{"id":1,"error":{"code":-3}}`:                                         "-3 json-rpc error -3",
		`{"id":1,"error":"no"}`:                                                "0 json-rpc error 0",
		`{"id":1,"error":null,"result":7}`:                                     `7`,
		`{"id":1}`:                                                             rpc.ErrNoResult.Error(),
		`{"id":2,"result":"0x1"}`:                                              errForeign.Error(),
		`{"id":"1","result":"0x1"}`:                                            errForeign.Error(),
		`{"result":"0x1"}`:                                                     errForeign.Error(),
		`{"id":0,"error":{"code":-3,"message":"no"}}`:                          errForeign.Error(),
		`{"id":1,"result":"0x1","result":"0x2"}`:                               "this is no answer",
		`{"id":1,"result":"0x1"}{"id":1,"result":"0x2"}`:                       "this is no answer",
		`{"id":1,"result":"0x1`:                                                "this is no answer",
		`{"id":1,"result":[}`:                                                  "this is no answer",
		`{"id":1,"result":}`:                                                   "this is no answer",
		`[{"id":1,"result":"0x1"}]`:                                            "this is no answer",
		`<html>`:                                                               "this is no answer",
		``:                                                                     "this is no answer",
		`{"id":1,"result":"` + strings.Repeat(`\\`, 1<<16) + `","x":1}`:        `"` + strings.Repeat(`\\`, 1<<16) + `"`,
	} {
		got, err := answeringWith(t, body).call(t.Context(), "eth_x")
		said := string(got)
		if err != nil {
			said = err.Error()
		}
		if refused, is := errors.AsType[rpc.Error](err); is {
			said = fmt.Sprint(refused.ErrorCode(), " ", err)
		}
		if said != want && !(want == "this is no answer" && strings.HasPrefix(said, want)) {
			t.Errorf("%.80s: %.80q, want %.80q", body, said, want)
		}
	}
}

// Answers to a batch go by their ids, in whatever order they come.
func TestAnswersOfABatch(t *testing.T) {
	no := `"error":{"code":-3,"message":"no"}`
	for body, want := range map[string]string{
		`[{"id":3,"result":"c"},{"id":1,"result":"a"},{"id":2,"result":"b"}]`:    `"a", "b", "c"`,
		`[{"id":2,` + no + `},null,{"id":1,"result":"a"},{"id":9,"result":"z"}]`: `"a", no, missing`,
		`[{"id":1,"result":"a"},{"id":1,"result":"z"},{"id":3},{"id":null}]`:     `"a", missing, nothing`,
		`[{"id":"2","result":"z"},{"id":18446744073709551615,"result":1}]`:       `missing, missing, missing`, //nolint:dupword // each of three
		`[]`:                          `missing, missing, missing`, //nolint:dupword // each of three
		`{"id":null,` + no + `}`:      `all: no`,
		`{"id":1,"result":"a"}`:       `all: this is no answer`,
		`[{"id":1,"result":"a"}`:      `all: this is no answer`,
		`[{"id":1,"result":"a"}] , x`: `all: this is no answer`,
	} {
		calls := []batchCall{{method: "eth_a"}, {method: "eth_b", args: []any{1}}, {method: "eth_c"}}
		var said string
		if err := answeringWith(t, body).batch(t.Context(), calls); err != nil {
			said = "all: " + err.Error()
		} else {
			for _, call := range calls {
				said += ", " + outcome(call)
			}
		}
		if said = strings.TrimPrefix(said, ", "); said != want && !strings.HasPrefix(said, want+":") {
			t.Errorf("%s: %s, want %s", body, said, want)
		}
	}
}

func outcome(call batchCall) string {
	switch {
	case errors.Is(call.err, rpc.ErrMissingBatchResponse):
		return "missing"
	case errors.Is(call.err, rpc.ErrNoResult):
		return "nothing"
	case call.err != nil:
		return call.err.Error()
	default:
		return string(call.result)
	}
}

// Requests are what the specification says, ids rise, and what an address has before its @ goes into a header.
func TestRequestsAreWritten(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		seen = append(seen, fmt.Sprintf("%s %s %s:%s %s", r.Method, r.Header.Get("Content-Type"), user, password, raw))
		if !json.Valid(raw) {
			t.Errorf("no JSON: %s", raw)
		}
	}))
	defer server.Close()
	p := &poster{url: strings.Replace(server.URL, "://", "://me:secret@", 1), http: server.Client()}
	_, _ = p.call(t.Context(), "eth_a")
	_ = p.batch(t.Context(), []batchCall{{method: "eth_b", args: []any{hexNumber(16), true}}, {method: "eth_c"}})
	head := "POST application/json me:secret "
	want := []string{
		head + `{"jsonrpc":"2.0","id":1,"method":"eth_a","params":[]}`,
		head + `[{"jsonrpc":"2.0","id":2,"method":"eth_b","params":["0x10",true]},` +
			`{"jsonrpc":"2.0","id":3,"method":"eth_c","params":[]}]`,
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("%s\nwant %s", seen, want)
	}
}

// Of any document the envelope is found where encoding/json finds it.
func TestValuesEndWhereTheyEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(documents(3).Draw(t, "document"))
		if err != nil {
			t.Fatal(err)
		}
		text := " " + string(raw) + ` , {"more":1}`
		c := cursor{raw: []byte(text)}
		got, err := c.value()
		if err != nil || string(got) != string(raw) || text[c.at:] != ` , {"more":1}` {
			t.Fatalf("%s, %v; want %s", got, err, raw)
		}
		again := cursor{raw: raw}
		if err := errors.Join(again.skip(), again.end()); err != nil {
			t.Fatalf("skipping %s: %v", raw, err)
		}
	})
}

func documents(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(),
		rapid.SampledFrom([]any{nil, "\\", `"`, `\"`, "\x01", "{", "]", 1.5e-7}).AsAny()}
	if depth > 0 {
		leaves = append(leaves, rapid.SliceOf(documents(depth-1)).AsAny(),
			rapid.MapOf(rapid.String(), documents(depth-1)).AsAny())
	}
	return rapid.OneOf(leaves...)
}
