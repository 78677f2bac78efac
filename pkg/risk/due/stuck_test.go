package due

import (
	"strings"
	"testing"

	"perpkeeper/pkg/perp"
)

// Where the venue would refuse every execution with a token, whatever is sent, nothing with it is due, and the sentence
// says why; it is due as before once that is over.
func TestNothingIsDueWithATokenThatIsStuck(t *testing.T) {
	const why = "the price of token X is fixed at two values"
	for name, decide := range map[string]func(*Moment) Decision{
		"a liquidation": func(m *Moment) Decision { return m.Position(long(100)) },
		"a market order": func(m *Moment) Decision {
			return m.Order(order(perp.MarketIncrease, 0), perp.Position{})
		},
	} {
		m := moment()
		if d := decide(m); !d.Due {
			t.Fatalf("%s is not due: %s", name, d.Why)
		}
		m = moment()
		q := m.Quotes[usdc]
		q.Stuck = why
		m.Quotes[usdc] = q
		if d := decide(m); d.Due || !strings.Contains(d.Why, why) {
			t.Errorf("%s: due %v, %q", name, d.Due, d.Why)
		}
	}
}
