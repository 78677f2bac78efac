package outbox

import (
	"perpkeeper/pkg/pg"
)

var listenIntents = pg.Register("listen for intents", `LISTEN intent_queued`)

// Listener returns a listener for intents that were queued, by whichever process. It connects at the first wait.
func (s Intents) Listener() *pg.Listener { return s.db.ListenOn(listenIntents) }
