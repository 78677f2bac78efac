package gmx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Asker calls contracts on the state after a block. A revert is no error: answered is then false and output the
// revert's data, which is empty where the contract has no such function.
type Asker interface {
	Ask(ctx context.Context, to chain.Address, data []byte) (output []byte, answered bool, err error)
}

// State also shows the code of contracts.
type State interface {
	Asker
	Coder
}

// The getters that the venue's contracts share, and those of its RoleStore.
var (
	getDataStore    = selector("dataStore()")
	getEventEmitter = selector("eventEmitter()")
	getRoleStore    = selector("roleStore()")
	getOracle       = selector("oracle()")
	getMemberCount  = selector("getRoleMemberCount(bytes32)")
	getMembers      = selector("getRoleMembers(bytes32,uint256,uint256)")
	getUint         = selector("getUint(bytes32)")
)

// mostMembers bounds how many holders of the role CONTROLLER are looked at: no venue has as many.
const mostMembers = 1000

// Finder finds the contracts of an exchange from its DataStore: every contract with the role CONTROLLER that executes
// something. The zero value is ready to use, by one goroutine at a time. It remembers what it has found out of a
// contract, whose code does not change, and the order in which handlers came.
type Finder struct {
	handlers []Handler              // in the order in which they were seen first
	others   map[chain.Address]bool // contracts that execute nothing
	versions Versions
}

// Find returns the exchange as it stands after a block, and which of the keepers' roles some signers hold.
func (f *Finder) Find(ctx context.Context, at State, store chain.Address, signers []chain.Address) (v Venue,
	err error) {
	v.DataStore = store
	if v.RoleStore, err = addressOf(ctx, at, store, getRoleStore); err != nil {
		return v, err
	}
	if v.RoleStore.IsZero() {
		return v, &noVenueError{store}
	}
	members, err := Holders(ctx, at, v.RoleStore, controllerRole)
	if err != nil {
		return v, err
	}
	for _, member := range members {
		if err := f.learn(ctx, at, member); err != nil {
			return v, err
		}
	}
	for _, h := range f.handlers {
		if slices.Contains(members, h.Address) {
			v.Handlers = append(v.Handlers, h)
		}
	}
	slices.SortStableFunc(v.Handlers, func(a, b Handler) int { return cmp.Compare(a.Version, b.Version) })
	v.Held, err = held(ctx, at, v.RoleStore, signers)
	return v, err
}

// noVenueError reports that an address is not a DataStore's.
type noVenueError struct{ at chain.Address }

func (e *noVenueError) Error() string {
	return fmt.Sprintf("%s names no RoleStore: it is not the DataStore of an exchange", e.at)
}

// NoVenue reports whether an error says that an address was not that of an exchange's DataStore.
func NoVenue(err error) bool {
	_, is := errors.AsType[*noVenueError](err)
	return is
}

// StoreOf finds the DataStore of the exchange that a contract belongs to: the contract is it, names it, or names the
// RoleStore, whose controllers do.
func StoreOf(ctx context.Context, at Asker, contract chain.Address) (store chain.Address, err error) {
	if _, err = Markets(ctx, at, contract); err == nil || unlessRefused(err) != nil {
		return contract, err
	}
	if store, err = addressOf(ctx, at, contract, getDataStore); err != nil || !store.IsZero() {
		return store, err
	}
	roles, err := addressOf(ctx, at, contract, getRoleStore)
	if err != nil {
		return store, err
	}
	if roles.IsZero() {
		roles = contract
	}
	members, err := Holders(ctx, at, roles, controllerRole)
	if unlessRefused(err) != nil {
		return store, err
	}
	for _, member := range members {
		if store, err = addressOf(ctx, at, member, getDataStore); err != nil || !store.IsZero() {
			return store, err
		}
	}
	return store, fmt.Errorf("%s is no contract of an exchange that this build knows", contract)
}

// Holders lists who holds a role.
func Holders(ctx context.Context, at Asker, roles chain.Address, name string) (members []chain.Address, err error) {
	role := perp.BaseKey(name)
	word, err := askWord(ctx, at, roles, getMemberCount, role)
	if err != nil {
		return nil, fmt.Errorf("asking %s how many hold the role %s: %w", roles, name, err)
	}
	count := countOf(word, mostMembers)
	output, answered, err := at.Ask(ctx, roles,
		getter(getMembers, role, chain.Hash{}, chain.U64(uint64(count)).Bytes32()))
	if err == nil && !answered {
		err = errRefused
	}
	w := walker{data: output}
	for i := range count {
		members = append(members, w.address(64+32*i))
	}
	if err = errors.Join(err, w.err); err != nil {
		return nil, fmt.Errorf("asking %s who holds the role %s: %w", roles, name, err)
	}
	return members, nil
}

// countOf reads a number of elements, no larger than most.
func countOf(output []byte, most int) int {
	w := walker{data: output}
	word := w.word(0)
	if n, fits := chain.UintFromBytes(word[:]).Uint64(); fits && n < uint64(most) {
		return int(n)
	}
	return most
}

// learn finds out what a contract is, if it is new. What has no code may get some later; a contract that has the
// functions and does not answer as a handler does is asked again.
func (f *Finder) learn(ctx context.Context, at State, contract chain.Address) error {
	if f.others[contract] || slices.ContainsFunc(f.handlers, func(h Handler) bool { return h.Address == contract }) {
		return nil
	}
	code, err := at.Code(ctx, contract)
	if err != nil || len(code) == 0 {
		return err
	}
	candidates := kindsIn(code)
	if len(candidates) == 0 {
		if f.others == nil {
			f.others = map[chain.Address]bool{}
		}
		f.others[contract] = true
		return nil
	}
	h := Handler{Address: contract}
	for _, kind := range candidates {
		executes, err := Executes(ctx, at, contract, kind)
		if err != nil {
			return err
		}
		if executes {
			h.Kinds = append(h.Kinds, kind)
		}
	}
	if len(h.Kinds) == 0 {
		return nil
	}
	if h.EventEmitter, err = addressOf(ctx, at, contract, getEventEmitter); err != nil {
		return err
	}
	if h.Oracle, err = addressOf(ctx, at, contract, getOracle); err != nil {
		return err
	}
	if h.Version, err = f.versions.Version(ctx, at, contract); err != nil {
		return err
	}
	f.handlers = append(f.handlers, h)
	return nil
}

// kindsIn are the kinds of job whose functions a contract may have, by its code: a function's selector is a constant
// there, without the zeros it begins with.
func kindsIn(code []byte) (kinds []job.Kind) {
	for _, kind := range job.Kinds() {
		name := selectors[kind]
		if bytes.Contains(code, bytes.TrimLeft(name[:], "\x00")) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Executes reports whether a contract has the function by which jobs of a kind are executed: it is asked by nobody in
// particular, and refuses in words of its own where it knows the function, for want of a role, and without a word where
// it does not. Nothing is executed.
func Executes(ctx context.Context, at Asker, contract chain.Address, kind job.Kind) (bool, error) {
	output, answered, err := at.Ask(ctx, contract, executions[kind].encode(job.Job{Kind: kind}, SetPrices{}))
	if err != nil {
		return false, fmt.Errorf("asking %s whether it executes a %s: %w", contract, kind, err)
	}
	return !answered && len(output) >= 4, nil
}

// keeperRoles are those that signers may need.
var keeperRoles = []string{orderRole, liquidationRole, adlRole, frozenRole}

// held asks which of the keepers' roles signers hold.
func held(ctx context.Context, at Asker, roles chain.Address, signers []chain.Address) (map[chain.Address][]string,
	error) {
	all := map[chain.Address][]string{}
	for _, signer := range signers {
		all[signer] = []string{}
		for _, role := range keeperRoles {
			has, err := HasRole(ctx, at, roles, signer, role)
			if err != nil {
				return nil, err
			}
			if has {
				all[signer] = append(all[signer], role)
			}
		}
	}
	return all, nil
}

// addressOf asks for an address; zero where there is no such getter.
func addressOf(ctx context.Context, at Asker, contract chain.Address, name [4]byte) (a chain.Address, err error) {
	word, err := askWord(ctx, at, contract, name)
	if err != nil {
		return a, unlessRefused(err)
	}
	return (&walker{data: word}).address(0), nil
}

// getter encodes a function whose arguments are words.
func getter(selector [4]byte, words ...chain.Hash) []byte {
	out := slices.Clone(selector[:])
	for _, w := range words {
		out = append(out, w[:]...)
	}
	return out
}
