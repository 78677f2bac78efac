package scanner

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// What no event carries is said once, again when it changed, and all of it after a reorg took it back.
func TestWordsAreSaidWhenTheyChange(t *testing.T) {
	read := func(a, b byte) []wire.Param {
		return []wire.Param{{Key: chain.Hash{1}, Value: chain.Hash{a}}, {Key: chain.Hash{2}, Value: chain.Hash{b}}}
	}
	var w words
	for i, step := range []struct {
		read []wire.Param
		want int
	}{{read(0, 0), 2}, {read(0, 0), 0}, {read(0, 7), 1}, {read(0, 7), 0}} {
		got := w.changed(step.read)
		if len(got) != step.want {
			t.Errorf("step %d: %d words said, want %d", i, len(got), step.want)
		}
		w.published(got, time.Now().Add(time.Hour))
	}
	if !time.Now().Before(w.due) {
		t.Error("they are due again at once")
	}
	w.forget()
	if len(w.changed(read(0, 7))) != 2 || time.Now().Before(w.due) {
		t.Error("after a reorg everything is due and said again")
	}
}
