package check

import (
	"errors"
	"testing"
	"time"
)

func TestWhatIsWrongIsOneLine(t *testing.T) {
	for want, err := range map[string]error{
		"":                                       errors.Join(Refuse(false, "key: no"), Between("key", 2, 1, 3)),
		"key: 7 is odd":                          Refuse(true, "key: %d is odd", 7),
		"n: 0 is not between 1 and 64":           Between("n", 0, 1, 64),
		"n: 65 is not between 1 and 64":          Between("n", 65, 1, 64),
		"d: 25h0m0s is not between 1s and 24h":   Between("d", 25*time.Hour, time.Second, 24*time.Hour),
		"d: 2h0m0s is not between 1m30s and 10m": Between("d", 2*time.Hour, 90*time.Second, 10*time.Minute),
		"d: -1s is not between 0s and 1h10m":     Between("d", -time.Second, 0, 70*time.Minute),
	} {
		if got := errors.Join(err); want == "" && got != nil || want != "" && got.Error() != want {
			t.Errorf("got %v, want %q", got, want)
		}
	}
}
