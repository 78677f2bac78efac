package preflight

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"perpkeeper/pkg/job"
)

// Whoever adds a kind of job and forgets what is checked of it is told here.
func TestEveryKindIsChecked(t *testing.T) {
	away := errors.New("connection refused")
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
	}
	_, v, err := pending{written{}, false, noGlv}.ask(t.Context(), job.Job{Kind: "?"})
	if err != nil || v.Outcome != job.Refused {
		t.Errorf("a kind that this build does not know: %+v, %v", v, err)
	}
}

// A kind need not have a gas setting, but whose setting a field is follows from its name.
func TestEveryGasSettingIsSomeKinds(t *testing.T) {
	limits := distinct()
	left := map[uint64]string{}
	for field, limit := range reflect.ValueOf(limits).Fields() {
		left[limit.Uint()] = field.Name
	}
	for _, kind := range job.Kinds() {
		limit := limits.of(kind)
		if name := left[limit]; limit != 0 && !strings.EqualFold(name, string(kind)) {
			t.Errorf("%s: its fixed gas limit is that of the setting %q", kind, name)
		}
		delete(left, limit)
	}
	for _, name := range left {
		t.Errorf("no kind of job is named as the setting %s of Gas (config.go beside this test): nobody reads it", name)
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
