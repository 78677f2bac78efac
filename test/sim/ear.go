package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// ear hears what one start of a keeper says to people: its log from warnings on, and why it is not ready. Passes work
// side by side, so that what is said within one event is put in order before it counts.
type ear struct {
	keeper *keeper
	reason string // why it is not ready, as last heard

	mu   sync.Mutex
	said []string // lines of the log since the last event
}

func (e *ear) logger() zerolog.Logger { return zerolog.New(e).Level(zerolog.WarnLevel) }

// Write takes a line of the log.
func (e *ear) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, string(line))
	return len(line), nil
}

// flush turns what was said since the last event into alerts.
func (e *ear) flush() {
	e.mu.Lock()
	said := e.said
	e.said = nil
	e.mu.Unlock()
	slices.Sort(said)
	for _, line := range said {
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

// trouble takes why the keeper is not ready.
func (e *ear) trouble(err error) {
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
	s := k.stage
	if n := s.numbers[keyIn(id)]; n != 0 {
		s.records[n].told = s.records[n].told || level == zerolog.LevelErrorValue
		text = fmt.Sprintf("%s: %s", s.nameOf(n), text)
	}
	s.alerts = append(s.alerts, Alert{At: s.agenda.now, Keeper: k.tier, Text: text})
	s.transcript.sayf(s, "%s warns: %s", tierName(k.tier), text)
}

// keyIn reads the key of an order, request or position from a job's id.
func keyIn(id string) (key chain.Hash) {
	if parts := strings.Split(id, ":"); len(parts) > 1 && key.UnmarshalText([]byte(parts[1])) == nil {
		return key
	}
	return chain.Hash{}
}
