package recordings

import (
	"encoding/json"
	"fmt"
	"os"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// rules say which version of the contracts the handlers of a recording are of. No log says it, and a recording has no
// chain to ask.
type rules struct {
	byDefault perp.Version
	handlers  map[chain.Address]perp.Version // those that differ
	known     map[chain.Address]bool         // those that have spoken
	newest    perp.Version                   // of them
	set       map[perp.RowKey]bool           // the rows that hold them
}

// readRules reads a file of rules: JSON with the default version, and by handler those that differ. Without a file all
// are of v2.2b.
func readRules(name string) (*rules, error) {
	r := &rules{byDefault: perp.V22b, handlers: map[chain.Address]perp.Version{}, known: map[chain.Address]bool{},
		set: map[perp.RowKey]bool{}}
	if name == "" {
		return r, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var said struct {
		Default  string                   `json:"default"`
		Handlers map[chain.Address]string `json:"handlers"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("%s is no JSON of rules: %w", name, err)
	}
	if said.Default != "" {
		if r.byDefault, err = parseVersion(said.Default); err != nil {
			return nil, fmt.Errorf("%s: default: %w", name, err)
		}
	}
	for handler, version := range said.Handlers {
		if r.handlers[handler], err = parseVersion(version); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, handler, err)
		}
	}
	return r, nil
}

// parseVersion reads a version's name.
func parseVersion(name string) (perp.Version, error) {
	for _, v := range []perp.Version{perp.V22b, perp.V22c} {
		if v.String() == name {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%q is no version of the contracts: v2.2b or v2.2c", name)
}

// before sets the version of each handler that is about to speak for the first time. The one that would be called is
// of the newest version that has spoken.
func (r *rules) before(book *perp.Book, logs []chain.Log, timeMs uint64) error {
	for _, handler := range gmx.Speakers(logs) {
		if r.known[handler] {
			continue
		}
		version, differs := r.handlers[handler]
		if !differs {
			version = r.byDefault
		}
		r.known[handler], r.newest = true, max(r.newest, version)
		for _, p := range []perp.Parameter{perp.HandlerVersion(handler, version),
			perp.HandlerVersion(chain.Address{}, r.newest)} {
			r.set[p.RowKey()] = true
			p.Stamp = perp.Stamp{Block: logs[0].Block, TimeMs: timeMs}
			if err := perp.Apply(book, perp.ParameterSet{Parameter: p}); err != nil {
				return err
			}
		}
	}
	return nil
}
