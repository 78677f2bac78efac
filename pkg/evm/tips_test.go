package evm_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestTips(t *testing.T) {
	node := startAnswering(t)
	c := dial(t, node.config())
	for reply, want := range map[string][][]uint64{
		`{"oldestBlock":"0x1","reward":[["0x1","0x2"],["0x0","0x0"],["0x3","0xffffffffffffffffff"]]}`: {{1, 2},
			{3, 1<<64 - 1}},
		`{"oldestBlock":"0x1"}`:                         nil,
		`{"oldestBlock":"0x1","reward":[["0x1"]]}`:      nil,
		`{"oldestBlock":"0x1","reward":[["0x1",null]]}`: nil,
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r, `"result":`+reply) })
		node.handler.Store(&handler)
		got, err := c.Tips(t.Context(), 3, []uint64{60, 90})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", reply, got, err, want)
		}
		if bad := strings.Contains(reply, "reward") && want == nil; (err != nil) != bad {
			t.Errorf("%s: %v", reply, err)
		}
	}
}
