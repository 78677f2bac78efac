package preflight

import (
	"errors"
	"reflect"
	"testing"

	"perpkeeper/pkg/job"
)

// Whoever adds a kind of job and forgets what is checked of it is told here.
func TestEveryKindIsChecked(t *testing.T) {
	away := errors.New("connection refused")
	limits := map[uint64]job.Kind{}
	for _, kind := range job.Kinds() {
		r, known := ruleOf(kind)
		if !known || r.pending == nil || r.keys == nil {
			t.Errorf("%s: what is checked of it is not whole", kind)
			continue
		}
		_, _, err := pending{written{err: away}, false, noGlv}.ask(t.Context(), job.Job{Kind: kind})
		if !errors.Is(err, away) {
			t.Errorf("%s: the state is not asked: %v", kind, err)
		}
		// a kind need not have a setting; none shares one
		if limit := distinct().of(kind); limit != 0 {
			if other, taken := limits[limit]; taken {
				t.Errorf("%s: the fixed gas limit is %d, as of %q", kind, limit, other)
			}
			limits[limit] = kind
		}
	}
	if fields := reflect.TypeFor[Gas]().NumField(); fields != len(limits) {
		t.Errorf("%d gas settings, of which %d are some kind's", fields, len(limits))
	}
	_, v, err := pending{written{}, false, noGlv}.ask(t.Context(), job.Job{Kind: "?"})
	if err != nil || v.Outcome != job.Refused {
		t.Errorf("a kind that this build does not know: %+v, %v", v, err)
	}
}

// distinct are gas limits of which no two are alike.
func distinct() (g Gas) {
	v := reflect.ValueOf(&g).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(uint64(i + 1))
	}
	return g
}
