package gmx

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Venue is an exchange as it stands after one block: the contracts that may act, and what signers may do. A venue that
// is upgraded has old and new handlers side by side for a while.
type Venue struct {
	Block     chain.BlockRef
	DataStore chain.Address
	RoleStore chain.Address
	// Handlers are the contracts with the role CONTROLLER that execute jobs, the newest last: first by the version of
	// the contracts, then by when they were seen first, then by their places in the RoleStore.
	Handlers []Handler
	// Held are the roles that signers hold, of those that were asked for.
	Held map[chain.Address][]string
}

// Handler is a contract that executes jobs.
type Handler struct {
	Address      chain.Address
	Kinds        []job.Kind // what it executes
	EventEmitter chain.Address
	Oracle       chain.Address
	Version      perp.Version // of the contracts, by its code
}

// VenueOf is a venue of which is known who executes what, and by which contract all of them emit.
func VenueOf(emitter chain.Address, executes map[job.Kind]chain.Address) (v Venue) {
	for _, kind := range job.Kinds() {
		if at, is := executes[kind]; is {
			v.Handlers = append(v.Handlers, Handler{Address: at, Kinds: []job.Kind{kind}, EventEmitter: emitter})
		}
	}
	return v
}

// Handler returns the contract that executes a kind of job, or what it cancels: of several the newest. It is false
// where there is none.
func (v Venue) Handler(kind job.Kind) (h Handler, is bool) {
	kind = executes(kind)
	for _, h := range slices.Backward(v.Handlers) {
		if slices.Contains(h.Kinds, kind) {
			return h, true
		}
	}
	return Handler{}, false
}

// EventEmitters are the contracts by which handlers emit their events.
func (v Venue) EventEmitters() (emitters []chain.Address) {
	for _, h := range v.Handlers {
		if !h.EventEmitter.IsZero() && !slices.Contains(emitters, h.EventEmitter) {
			emitters = append(emitters, h.EventEmitter)
		}
	}
	return emitters
}

// Executors are the addresses of all handlers.
func (v Venue) Executors() []chain.Address {
	all := make([]chain.Address, len(v.Handlers))
	for i, h := range v.Handlers {
		all[i] = h.Address
	}
	return all
}

// Demand returns an error that names those of the given kinds that no contract executes.
func (v Venue) Demand(kinds ...job.Kind) error {
	missing := slices.DeleteFunc(slices.Clone(kinds), func(kind job.Kind) bool {
		_, is := v.Handler(kind)
		return is
	})
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no contract with the role %s executes %v (block %d, RoleStore %s)", controllerRole, missing,
		v.Block.Number, v.RoleStore)
}

// Lacks returns a role that a signer needs for a job and does not hold; empty where it holds all, or was not asked
// about.
func (v Venue) Lacks(signer chain.Address, j job.Job) (role string) {
	held, asked := v.Held[signer]
	switch role = executions[executes(j.Kind)].role; {
	case asked && !slices.Contains(held, role):
		return role
	case asked && j.Frozen && !slices.Contains(held, frozenRole):
		return frozenRole
	}
	return ""
}

// Call returns the contract and the calldata that execute a job with the given price reports. Cancelling takes none.
func (v Venue) Call(j job.Job, prices SetPrices) (to chain.Address, calldata []byte, err error) {
	e, known := executions[executes(j.Kind)]
	if !known {
		return to, nil, fmt.Errorf("job %s: no call executes a %q", j.ID, j.Kind)
	}
	h, is := v.Handler(j.Kind)
	if !is {
		return to, nil, fmt.Errorf("job %s: %w", j.ID, v.Demand(j.Kind))
	}
	if _, cancels := j.Kind.Cancels(); cancels {
		return h.Address, getter(cancellations[j.Kind], j.Key), nil
	}
	if err := prices.check(); err != nil {
		return to, nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	return h.Address, e.encode(j, prices), nil
}
