package pg

var listenIntents = register("listen for intents", `LISTEN intent_queued`)

// Listener returns a listener for intents that were queued, by whichever process. It connects at the first wait.
func (s Intents) Listener() *Listener { return &Listener{db: s.db, channel: listenIntents} }
