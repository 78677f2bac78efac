package gmx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Asker calls contracts on the newest state. A revert is no error: answered is then false and output the revert's data,
// which is empty where the contract has no such function.
type Asker interface {
	Ask(ctx context.Context, to chain.Address, data []byte) (output []byte, answered bool, err error)
}

// Found is what was read from the contracts of a deployment.
type Found struct {
	Config
	// Several are the settings for which more than one contract would do: a venue that was upgraded keeps the handlers
	// of before. They are left out of Config.
	Several map[string][]chain.Address
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

// routerGetters are the handlers that routers name.
var routerGetters = [][4]byte{
	selector("orderHandler()"), selector("depositHandler()"), selector("withdrawalHandler()"),
	selector("shiftHandler()"),
	selector("glvDepositHandler()"), selector("glvWithdrawalHandler()"), selector("glvHandler()"),
	selector("liquidationHandler()"), selector("adlHandler()"),
}

// controller is the role that every handler has, as the venue hashes role names.
var controller = chain.Keccak256(roleName("CONTROLLER"))

// mostMembers bounds how many holders of the role are looked at.
const mostMembers = 200

// Discover finds the contracts of an exchange from one of them: its DataStore, a router or a handler. Handlers are
// those that a router names and, where the venue has a list of who holds the role CONTROLLER, every contract in it that
// executes something. An error names what the address is not.
func Discover(ctx context.Context, node Asker, start chain.Address) (Found, error) {
	d := discovery{node: node, handlers: map[string][]chain.Address{}}
	if err := d.from(ctx, start); err != nil {
		return Found{}, fmt.Errorf("looking for the contracts from %s: %w", start, err)
	}
	found := Found{Config: Config{EventEmitter: d.emitter, DataStore: d.store, Oracle: d.oracle},
		Several: map[string][]chain.Address{}}
	for setting, all := range d.handlers {
		if len(all) > 1 {
			found.Several[setting] = all
			continue
		}
		found.Set(setting, all[0])
	}
	return found, nil
}

// Settings lists what is configured, by the names of the [venue] section.
func (c Config) Settings() (all []Setting) {
	for name, a := range c.addresses() {
		all = append(all, Setting{name, *a})
	}
	return all
}

// Setting is one address of the [venue] section; zero where there is none.
type Setting struct {
	Name    string
	Address chain.Address
}

// Set changes one address of the [venue] section by its name; of a name that is none nothing comes.
func (c *Config) Set(setting string, a chain.Address) {
	for name, into := range c.addresses() {
		if name == setting {
			*into = a
		}
	}
}

// addresses are the fields of the configuration, by their names there.
func (c *Config) addresses() iter.Seq2[string, *chain.Address] {
	return func(yield func(string, *chain.Address) bool) {
		fields := reflect.ValueOf(c).Elem()
		for i := range fields.NumField() {
			into, is := reflect.TypeAssert[*chain.Address](fields.Field(i).Addr())
			if is && !yield(fields.Type().Field(i).Tag.Get("toml"), into) {
				return
			}
		}
	}
}

// discovery is one look at a deployment.
type discovery struct {
	node                   Asker
	store, emitter, oracle chain.Address
	handlers               map[string][]chain.Address // by setting
}

func (d *discovery) from(ctx context.Context, start chain.Address) error {
	roles, err := d.look(ctx, start)
	if err != nil {
		return err
	}
	named, err := d.named(ctx, start)
	if err != nil {
		return err
	}
	for _, contract := range append(named, start) {
		more, err := d.look(ctx, contract)
		if err != nil {
			return err
		}
		if roles.IsZero() {
			roles = more
		}
		if err := d.classify(ctx, contract); err != nil {
			return err
		}
	}
	if err := d.members(ctx, roles); err != nil {
		return err
	}
	if d.store.IsZero() && d.emitter.IsZero() && len(d.handlers) == 0 {
		return errors.New("it is no contract of an exchange (give the address of its DataStore or ExchangeRouter)")
	}
	return nil
}

// look asks a contract for what most of the venue's contracts know.
func (d *discovery) look(ctx context.Context, contract chain.Address) (roles chain.Address, err error) {
	for _, g := range []struct {
		name [4]byte
		into *chain.Address
	}{{getDataStore, &d.store}, {getEventEmitter, &d.emitter}, {getOracle, &d.oracle}, {getRoleStore, &roles}} {
		a, err := d.address(ctx, contract, g.name)
		if err != nil {
			return roles, err
		}
		if g.into.IsZero() {
			*g.into = a
		}
	}
	if _, is, err := d.node.Ask(ctx, contract, getter(getUint, chain.Hash{})); err != nil {
		return roles, err
	} else if is && d.store.IsZero() {
		d.store = contract
	}
	return roles, nil
}

// named are the handlers that a router names.
func (d *discovery) named(ctx context.Context, router chain.Address) (named []chain.Address, err error) {
	for _, name := range routerGetters {
		a, err := d.address(ctx, router, name)
		if err != nil {
			return nil, err
		}
		if !a.IsZero() {
			named = append(named, a)
		}
	}
	return named, nil
}

// members classifies every holder of the role CONTROLLER. What a router named comes first and is not joined by others:
// they are of before.
func (d *discovery) members(ctx context.Context, roles chain.Address) error {
	if roles.IsZero() {
		return nil
	}
	output, answered, err := d.node.Ask(ctx, roles, getter(getMemberCount, controller))
	if err != nil || !answered {
		return err
	}
	count := countOf(output, mostMembers)
	output, answered, err = d.node.Ask(ctx, roles,
		getter(getMembers, controller, chain.Hash{}, chain.Hash{31: byte(count)}))
	if err != nil || !answered {
		return err
	}
	known := map[string]bool{}
	for setting := range d.handlers {
		known[setting] = true
	}
	w := walker{data: output}
	for i := range count {
		member := w.address(64 + 32*i)
		if w.err != nil {
			return fmt.Errorf("the list of the role CONTROLLER cannot be read: %w", w.err)
		}
		more := discovery{node: d.node, handlers: map[string][]chain.Address{}}
		if err := more.classify(ctx, member); err != nil {
			return err
		}
		if len(more.handlers) > 0 && (d.store.IsZero() || d.emitter.IsZero() || d.oracle.IsZero()) {
			if _, err := d.look(ctx, member); err != nil {
				return err
			}
		}
		for setting := range more.handlers {
			if !known[setting] {
				d.add(setting, member)
			}
		}
	}
	return nil
}

// countOf reads a number of elements, no larger than most.
func countOf(output []byte, most int) int {
	w := walker{data: output}
	word := w.word(0)
	if n, fits := perp.UintFromBytes(word[:]).Uint64(); fits && n < uint64(most) {
		return int(n)
	}
	return most
}

// classify finds out which jobs a contract executes: it is asked for each by nobody in particular, and refuses in words
// of its own where it knows the function, for want of a role, and without a word where it does not.
func (d *discovery) classify(ctx context.Context, contract chain.Address) error {
	for _, kind := range job.Kinds() {
		e := executions[kind]
		output, answered, err := d.node.Ask(ctx, contract, e.encode(job.Job{Kind: kind}, SetPrices{}))
		if err != nil {
			return err
		}
		if !answered && len(output) >= 4 {
			d.add(e.setting, contract)
		}
	}
	return nil
}

func (d *discovery) add(setting string, a chain.Address) {
	if !slices.Contains(d.handlers[setting], a) {
		d.handlers[setting] = append(d.handlers[setting], a)
	}
}

// address asks for an address; zero where there is no such getter.
func (d *discovery) address(ctx context.Context, contract chain.Address, name [4]byte) (a chain.Address, err error) {
	word, err := askWord(ctx, d.node, contract, name)
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

// roleName is a role's name as the venue hashes it: abi.encode(string).
func roleName(name string) []byte {
	out := appendNumber(nil, 32)
	out = appendNumber(out, len(name))
	padded := make([]byte, (len(name)+31)/32*32)
	copy(padded, name)
	return append(out, padded...)
}
