package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// logCapture takes the log of one start of a keeper from warnings on, and why it is not ready. Passes work side by
// side, so that lines logged within one event are sorted before they count.
type logCapture struct {
	keeper *keeper
	reason string // why it is not ready, as last noted

	mu    sync.Mutex
	lines []string // lines of the log since the last event
}

func (e *logCapture) logger() zerolog.Logger { return zerolog.New(e).Level(zerolog.WarnLevel) }

// Write takes a line of the log.
func (e *logCapture) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, string(line))
	return len(line), nil
}

// flush turns the lines logged since the last event into alerts.
func (e *logCapture) flush() {
	e.mu.Lock()
	lines := e.lines
	e.lines = nil
	e.mu.Unlock()
	slices.Sort(lines)
	for _, line := range lines {
		var fields struct {
			Message string `json:"message"`
			Error   string `json:"error"`
			Reason  string `json:"reason"`
			Outcome string `json:"outcome"`
			Job     string `json:"job"`
			Level   string `json:"level"`
		}
		if json.Unmarshal([]byte(line), &fields) != nil {
			fields.Message = line
		}
		parts := slices.DeleteFunc([]string{fields.Message, fields.Outcome, fields.Reason, fields.Error},
			func(part string) bool { return part == "" })
		e.keeper.alert(strings.Join(parts, ": "), fields.Job, fields.Level)
	}
}

// noteReadiness notes why the keeper is not ready; nil if it is.
func (e *logCapture) noteReadiness(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != e.reason && reason != "" {
		e.keeper.alert("not ready: "+reason, "", "warn")
	}
	e.reason = reason
}

// alert is a warning or worse, perhaps about a job.
func (k *keeper) alert(text, id, level string) {
	s := k.sim
	if n := s.numbers[keyIn(id)]; n != 0 {
		s.records[n].reported = s.records[n].reported || level == zerolog.LevelErrorValue
		text = fmt.Sprintf("%s: %s", s.nameOf(n), text)
	}
	s.alerts = append(s.alerts, Alert{At: s.events.now, Keeper: k.tier, Text: text})
	s.transcript.addf(s, "%s warns: %s", tierName(k.tier), text)
}

// keyIn reads the key of an order, request or position from a job's id.
func keyIn(id string) (key chain.Hash) {
	if parts := strings.Split(id, ":"); len(parts) > 1 && key.UnmarshalText([]byte(parts[1])) == nil {
		return key
	}
	return chain.Hash{}
}
