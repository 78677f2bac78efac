package doctor

import "fmt"

const (
	fixVenue = "ask the exchange for the address of its DataStore, and set venue.data_store"
	fixStart = "name the block in which the exchange's DataStore was created, or one after it and before the first " +
		"market"
)

var venueChecks = []check{
	// Nothing is known of the contracts then.
	{"venue-asked", "venue", false, func(f *Facts, found report) {
		if f.VenueError != nil {
			found(Failure, "", "the contracts cannot be asked: "+f.VenueError.Error(),
				"see what is wrong with the endpoints, and ask again")
		}
	}},
	{"venue-contract", "venue", false, ofVenue(func(v *Venue, found report) {
		switch {
		case v.DataStore.IsZero():
			found(Failure, "data_store", "no address is configured", fixVenue)
		case v.Roles.IsZero():
			found(Failure, "data_store", v.DataStore.Hex()+" is no exchange's DataStore: it names no RoleStore",
				fixVenue)
		}
	})},
	{"venue-emitter", "venue", false, ofVenue(func(v *Venue, found report) {
		if !v.Emitter.IsZero() {
			found(Failure, "event_emitter", fmt.Sprintf("the exchange's handlers emit by %s, and %s is configured: "+
				"what happens would not be seen", v.Emitters, v.Emitter),
				"take venue.event_emitter out of the configuration")
		}
	})},
	// Retired handlers stay on the chain and refuse: the venue has taken the role CONTROLLER from them.
	{"venue-handlers", "venue", false, func(f *Facts, found report) {
		if f.Venue == nil || f.Settings.Monitor {
			return
		}
		for _, kind := range f.Venue.Missing {
			found(Failure, kind, "no contract with the role CONTROLLER executes these jobs: they are never sent",
				"ask the exchange; it may be in the midst of an upgrade")
		}
	}},
	{"venue-markets", "venue", false, ofVenue(func(v *Venue, found report) {
		if v.Markets == 0 && !v.Roles.IsZero() {
			found(Failure, "data_store", v.DataStore.Hex()+" lists no market",
				"if the exchange has markets, this is not its DataStore: "+fixVenue)
		}
	})},
	{"venue-start-block", "venue", false, func(f *Facts, found report) {
		switch at, head := f.Settings.StartBlock, f.best().Number; {
		case at == 0:
			found(Failure, "", "scanner.start_block is not set", fixStart)
		case head > 0 && at > head:
			found(Failure, "", fmt.Sprintf("scanner.start_block is %d, and the chain's head %d", at, head), fixStart)
		case f.Venue != nil && f.Venue.MarketsAtStart > 0:
			found(Failure, "", fmt.Sprintf("there were %d markets before block %d, where the record begins: their "+
				"events are missed", f.Venue.MarketsAtStart, at), fixStart+"; and read the history anew")
		}
	}},
}

// ofVenue judges the venue where it is known.
func ofVenue(look func(*Venue, report)) func(*Facts, report) {
	return func(f *Facts, found report) {
		if f.Venue != nil {
			look(f.Venue, found)
		}
	}
}
