package notify

import (
	"fmt"
	"strings"
)

// Subject is the message in one line, for people.
func (m Message) Subject() string {
	where := fmt.Sprintf("chain %d", m.ChainID)
	switch {
	case m.Liquidation != nil:
		return fmt.Sprintf("%s: position %s (%s)", m.Event, m.Liquidation.Position, where)
	case m.Alarm != nil && m.Alarm.Over:
		return fmt.Sprintf("over: %s (%s)", m.Alarm.Name, where)
	case m.Alarm != nil:
		return fmt.Sprintf("%s: %s (%s)", m.Event, m.Alarm.Name, where)
	}
	return fmt.Sprintf("%s (%s)", m.Event, where)
}

// Text is the message for people, as plain text of a few lines. The last one is its id, by which a reader can tell that
// a message has come twice.
func (m Message) Text() string {
	lines := []string{m.Subject()}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	if l := m.Liquidation; l != nil {
		add("outcome", l.Outcome)
		add("reason", l.Reason)
		add("account", l.Account)
		add("market", strings.TrimSpace(l.MarketName+" "+l.Market))
		add("transaction", l.TxHash)
		add("to be seen at", l.Explorer)
		add("job", l.Job)
	}
	if m.Alarm != nil {
		lines = append(lines, m.Alarm.Text)
	}
	add("id", m.ID)
	return strings.Join(lines, "\n")
}
