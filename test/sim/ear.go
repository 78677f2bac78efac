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

// ear hears what one start of a keeper says to people: its log from warnings on, and why it is not ready. Passes work side by side, so that what is said
// within one event is put in order before it counts.
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
			Message, Error, Reason, Outcome, Job, Level string
		}
		if json.Unmarshal([]byte(line), &fields) != nil {
			fields.Message = line
		}
		text := fields.Message
		for _, more := range []string{fields.Outcome, fields.Reason, fields.Error} {
			if more != "" {
				text += ": " + more
			}
		}
		e.keeper.alert(text, fields.Job, fields.Level)
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
	s.transcript.say(s, "%s warns: %s", tierName(k.tier), text)
}

// keyIn reads the key of an order, request or position from a job's id.
func keyIn(id string) (key chain.Hash) {
	if parts := strings.Split(id, ":"); len(parts) > 1 && key.UnmarshalText([]byte(parts[1])) == nil {
		return key
	}
	return chain.Hash{}
}
