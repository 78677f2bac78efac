package simulator

import (
	"strings"
	"testing"
	"time"
)

// Bad input gets one line for each problem: what, where, what to do.
func TestScenarioSaysWhatIsWrong(t *testing.T) {
	const good = "duration = \"10s\"\njobs = { per_second = 1 }\n"
	if _, err := parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"duration = 10":             "line 1",
		"duration = \"10 parsecs\"": "not a duration",
		"duration = \"10s":          "line 1",
		good + "colour = \"red\"":   "line 3: unknown key colour",
		"jobs = { per_second = 1 }": "duration: it is missing",
		"duration = \"10s\"":        "name a rate",
		"duration = \"10s\"\njobs = { per_second = 1, per_day = 1 }":   "two ways",
		"duration = \"10s\"\njobs = { per_second = 1, deposits = -1 }": "none may be negative",
		"duration = \"10s\"\njobs = { per_second = 1, poison = 101 }":  "no percentage",
		good + "keepers = 0":       "keepers: 0 is not between",
		good + "seeds = 0":         "seeds: 0",
		good + "policy = \"vote\"": "neither windows nor delay",
		good +
			"[[fault]]\nwhat = \"plague\"": `"plague" is none of behind, clock_off`,
		good + "[[fault]]\nwhat = \"down\"\nkeeper = 4\nto = \"1s\"":            "keeper: 4 is not between",
		good + "[[fault]]\nwhat = \"halt\"\nkeeper = 1\nto = \"1s\"":            "concerns the chain",
		good + "[[fault]]\nwhat = \"late\"\nto = \"1s\"":                        "late needs a duration",
		good + "[[fault]]\nwhat = \"late\"\nto = \"1s\"\nby = \"-1s\"":          "negative",
		good + "[[fault]]\nwhat = \"reorg\"":                                    "a number of blocks",
		good + "[[fault]]\nwhat = \"down\"\nfrom = \"2s\"\nto = \"1s\"":         "ends (1s) before it begins (2s)",
		good + "[[fault]]\nwhat = \"down\"\nto = \"2s\"\nevery = \"1s\"":        "shorter than the fault",
		good + "[[fault]]\nwhat = \"down\"\nto = \"2s\"\nevery = \"3s\"":        "needs an end",
		good + "[[expect]]\nmeasure = \"luck\"\nat_most = 1":                    `"luck" is none of alerts`,
		good + "[[expect]]\nmeasure = \"executed\"":                             "name a bound",
		good + "[[expect]]\nmeasure = \"executed_by\"\nat_most = 1":             "name its tier",
		good + "[[expect]]\nmeasure = \"sent\"\nto = \"2s\"\nevery = \"1s\"":    "shorter than what it repeats",
		good + "[[expect]]\nmeasure = \"alerts\"\nat_most = 1":                  "name the text",
		good + "[[expect]]\nmeasure = \"executed\"\nat_most = 1\ntier = 9":      "tier: 9",
		good + "[[expect]]\nmeasure = \"executed\"\nat_most = 1\nkinds=[\"x\"]": `"x" is none of`,
	} {
		_, err := parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n  got %v\n  want %q", text, err, want)
		}
	}
}

func TestRepeatedFaults(t *testing.T) {
	second := func(n int) Span { return Span(time.Duration(n) * time.Second) }
	f := Fault{What: Down, Keeper: 1, From: second(60), To: second(80), Every: second(40), Until: second(200)}
	var from []float64
	for _, span := range f.times() {
		if span[1]-span[0] != 20*time.Second {
			t.Errorf("it lasts %s", span[1]-span[0])
		}
		from = append(from, span[0].Seconds())
	}
	if len(from) != 4 || from[3] != 180 {
		t.Errorf("it begins at %v", from)
	}
}

func TestEveryScenarioCanBeRead(t *testing.T) {
	all, err := LoadAll("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Seeds < 20 && s.Duration < Span(24*time.Hour) || len(s.Expect) == 0 || s.Says == "" {
			t.Errorf("%s: seeds %d, %d expectations, says %q", s.Name, s.Seeds, len(s.Expect), s.Says)
		}
	}
}
