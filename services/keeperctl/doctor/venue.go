package doctor

import "fmt"

func venueChecks() []check {
	return []check{
		{"venue-asked", "venue", false, notAsked},
		{"venue-contract", "venue", false, noContract},
		{"venue-data-store", "venue", false, otherStore},
		{"venue-emitter", "venue", false, otherEmitter},
		{"venue-executes", "venue", false, executesNothing},
		{"venue-controller", "venue", false, retired},
		{"venue-handlers", "venue", false, missingHandlers},
		{"venue-markets", "venue", false, noMarkets},
		{"venue-start-block", "venue", false, lateStart},
	}
}

const fixVenue = "ask the exchange for its contracts, or the chain: keeperctl addresses DATASTORE"

// notAsked: nothing is known of the contracts then.
func notAsked(f *Facts) []fault {
	if f.VenueError == nil {
		return nil
	}
	return []fault{{Failure, "", "the contracts cannot be asked: " + f.VenueError.Error(),
		"see what is wrong with the endpoints, and ask again"}}
}

// noContract is about the two contracts by which the others are known.
func noContract(f *Facts) (found []fault) {
	if f.Venue == nil {
		return nil
	}
	for _, c := range []Contract{f.Venue.DataStore, f.Venue.EventEmitter} {
		switch {
		case c.Address.IsZero():
			found = append(found, fault{Failure, c.Setting, "no address is configured", fixVenue})
		case c.Roles.IsZero():
			found = append(found, fault{Failure, c.Setting,
				c.Address.Hex() + " is no contract of an exchange: it names no RoleStore", fixVenue})
		case c.Roles != f.Venue.DataStore.Roles && !f.Venue.DataStore.Roles.IsZero():
			found = append(found, fault{Failure, c.Setting, fmt.Sprintf("its RoleStore is %s, that of the "+
				"DataStore %s: they are of two exchanges", c.Roles, f.Venue.DataStore.Roles), fixVenue})
		}
	}
	return found
}

func otherStore(f *Facts) []fault {
	return handlers(f, func(v *Venue, c Contract) string {
		if c.DataStore == v.DataStore.Address {
			return ""
		}
		return fmt.Sprintf("%s was deployed with the DataStore %s, and %s is configured", c.Address, c.DataStore,
			v.DataStore.Address)
	})
}

func otherEmitter(f *Facts) []fault {
	return handlers(f, func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.EventEmitter == v.EventEmitter.Address {
			return ""
		}
		return fmt.Sprintf("%s emits its events by %s, and %s is configured: its executions would not be seen",
			c.Address, c.EventEmitter, v.EventEmitter.Address)
	})
}

func executesNothing(f *Facts) []fault {
	return handlers(f, func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.Executes {
			return ""
		}
		return fmt.Sprintf("%s does not have the function by which these jobs are executed", c.Address)
	})
}

// retired handlers stay on the chain and refuse: the venue has taken the role CONTROLLER from them.
func retired(f *Facts) []fault {
	return handlers(f, func(v *Venue, c Contract) string {
		if c.DataStore != v.DataStore.Address || c.Controller {
			return ""
		}
		return fmt.Sprintf("%s has no role CONTROLLER: the exchange has replaced it", c.Address)
	})
}

// handlers asks of each handler what is wrong with it.
func handlers(f *Facts, wrong func(*Venue, Contract) string) (found []fault) {
	if f.Venue == nil {
		return nil
	}
	for _, c := range f.Venue.Handlers {
		if seen := wrong(f.Venue, c); seen != "" {
			found = append(found, fault{Failure, c.Setting, seen, fixVenue})
		}
	}
	return found
}

func missingHandlers(f *Facts) (found []fault) {
	if f.Venue == nil || f.Settings.Monitor {
		return nil
	}
	for _, setting := range f.Venue.Missing {
		found = append(found, fault{Failure, setting, "no address is configured: its jobs are never sent", fixVenue})
	}
	return found
}

func noMarkets(f *Facts) []fault {
	if f.Venue == nil || f.Venue.Markets > 0 || f.Venue.DataStore.Roles.IsZero() {
		return nil
	}
	return []fault{{Failure, "data_store", f.Venue.DataStore.Address.Hex() + " lists no market",
		"if the exchange has markets, this is not its DataStore: " + fixVenue}}
}

func lateStart(f *Facts) []fault {
	switch at := f.Settings.StartBlock; {
	case at == 0:
		return []fault{{Failure, "", "scanner.start_block is not set",
			"name the block in which the exchange's DataStore was created"}}
	case f.best().Number > 0 && at > f.best().Number:
		return []fault{{Failure, "", fmt.Sprintf("scanner.start_block is %d, and the chain's head %d", at,
			f.best().Number), "name the block in which the exchange's DataStore was created"}}
	case f.Venue != nil && f.Venue.MarketsAtStart > 0:
		return []fault{{Failure, "", fmt.Sprintf("there were %d markets before block %d, where the record begins: "+
			"their events are missed", f.Venue.MarketsAtStart, at), "name an earlier block, and read the history anew"}}
	}
	return nil
}
