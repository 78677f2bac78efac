package doctor

import "fmt"

const (
	fixVenue = "ask the exchange for its contracts, or the chain: keeperctl addresses DATASTORE"
	fixStart = "name the block in which the exchange's DataStore was created"
)

var venueChecks = []check{
	// Nothing is known of the contracts then.
	{"venue-asked", "venue", false, func(f *Facts, found report) {
		if f.VenueError != nil {
			found(Failure, "", "the contracts cannot be asked: "+f.VenueError.Error(),
				"see what is wrong with the endpoints, and ask again")
		}
	}},
	// About the two contracts by which the others are known.
	{"venue-contract", "venue", false, ofVenue(func(v *Venue, found report) {
		for _, c := range []Contract{v.DataStore, v.EventEmitter} {
			switch {
			case c.Address.IsZero():
				found(Failure, c.Setting, "no address is configured", fixVenue)
			case c.Roles.IsZero():
				found(Failure, c.Setting, c.Address.Hex()+" is no contract of an exchange: it names no RoleStore",
					fixVenue)
			case c.Roles != v.DataStore.Roles && !v.DataStore.Roles.IsZero():
				found(Failure, c.Setting, fmt.Sprintf("its RoleStore is %s, that of the DataStore %s: they are of two "+
					"exchanges", c.Roles, v.DataStore.Roles), fixVenue)
			}
		}
	})},
	{"venue-data-store", "venue", false, handlers(func(v *Venue, c Contract) string {
		if c.DataStore == v.DataStore.Address {
			return ""
		}
		return fmt.Sprintf("%s was deployed with the DataStore %s, and %s is configured", c.Address, c.DataStore,
			v.DataStore.Address)
	})},
	{"venue-emitter", "venue", false, handlers(func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.EventEmitter == v.EventEmitter.Address {
			return ""
		}
		return fmt.Sprintf("%s emits its events by %s, and %s is configured: its executions would not be seen",
			c.Address, c.EventEmitter, v.EventEmitter.Address)
	})},
	{"venue-executes", "venue", false, handlers(func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.Executes {
			return ""
		}
		return c.Address.Hex() + " does not have the function by which these jobs are executed"
	})},
	// Retired handlers stay on the chain and refuse: the venue has taken the role CONTROLLER from them.
	{"venue-controller", "venue", false, handlers(func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.Controller {
			return ""
		}
		return c.Address.Hex() + " has no role CONTROLLER: the exchange has replaced it"
	})},
	{"venue-handlers", "venue", false, func(f *Facts, found report) {
		if f.Venue == nil || f.Settings.Monitor {
			return
		}
		for _, setting := range f.Venue.Missing {
			found(Failure, setting, "no address is configured: its jobs are never sent", fixVenue)
		}
	}},
	{"venue-markets", "venue", false, ofVenue(func(v *Venue, found report) {
		if v.Markets == 0 && !v.DataStore.Roles.IsZero() {
			found(Failure, "data_store", v.DataStore.Address.Hex()+" lists no market",
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
				"events are missed", f.Venue.MarketsAtStart, at), "name an earlier block, and read the history anew")
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

// handlers asks of each handler what is wrong with it; nothing = it is right.
func handlers(wrong func(*Venue, Contract) string) func(*Facts, report) {
	return ofVenue(func(v *Venue, found report) {
		for _, c := range v.Handlers {
			if seen := wrong(v, c); seen != "" {
				found(Failure, c.Setting, seen, fixVenue)
			}
		}
	})
}
