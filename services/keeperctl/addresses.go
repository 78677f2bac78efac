package keeperctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/operator/contract"
)

const addressesUsage = "addresses DATASTORE|ROUTER | addresses --keeperctl.deployments FILE"

// addresses prints the lines of a region's env file that name the exchange's contracts.
func addresses(ctx context.Context, s *session, args []string) error {
	if file := s.Own.Deployments; file != "" && len(args) == 0 {
		venue, err := readDeployments(file)
		if err != nil {
			return err
		}
		return writeAddresses(s.out, gmx.Found{Config: venue})
	}
	if len(args) != 1 || s.Own.Deployments != "" {
		return usagef("usage: keeperctl %s", addressesUsage)
	}
	start, err := chain.ParseAddress(args[0])
	if err != nil {
		return usagef("%q is no address: %w", args[0], err)
	}
	node, err := s.node(ctx)
	if err != nil {
		return err
	}
	head, err := node.Head(ctx)
	if err != nil {
		return notAsked(fmt.Errorf("asking for the newest block: %w", err))
	}
	found, err := gmx.Discover(ctx, contract.Asker{Node: node, Block: head.Hash}, start)
	if err != nil {
		return err
	}
	return writeAddresses(s.out, found)
}

// writeAddresses prints what was found as lines of an env file, and what was not as comments.
func writeAddresses(out printer, found gmx.Found) error {
	var b strings.Builder
	known := map[string]chain.Address{}
	for _, s := range found.Settings() {
		several := found.Several[s.Name]
		switch key := strings.ToUpper(s.Name); {
		case key == "ORACLE": // no process needs it
		case !s.Address.IsZero():
			known[key] = s.Address
			fmt.Fprintf(&b, "%s=%s\n", key, s.Address)
		case len(several) > 0:
			fmt.Fprintf(&b, "# %s is one of %v: the venue knows which\n#%s=\n", key, several, key)
		default:
			fmt.Fprintf(&b, "# %s was not found: the venue has none, or give another of its contracts\n#%s=\n", key,
				key)
		}
	}
	return out.either(known, b.String())
}

// readDeployments finds the contracts in a JSON file in which, at any depth, a contract's name stands for its address
// or for an object that has one.
func readDeployments(path string) (venue gmx.Config, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return venue, fmt.Errorf("reading the deployments: %w", err)
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return venue, fmt.Errorf("%s: is not valid JSON: %w", path, err)
	}
	found := map[string]chain.Address{}
	if err := collect(content, "", found); err != nil {
		return venue, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range venue.Settings() {
		venue.Set(s.Name, found[plainName(s.Name)])
	}
	if venue.EventEmitter.IsZero() && venue.DataStore.IsZero() {
		return venue,
			fmt.Errorf("%s: names neither an EventEmitter nor a DataStore (\"EventEmitter\": \"0x…\" is expected)",
				path)
	}
	return venue, nil
}

// collect notes each address under the name it stands for. The same name with two addresses is an error: nobody can
// tell which is meant.
func collect(content any, name string, found map[string]chain.Address) error {
	switch content := content.(type) {
	case map[string]any:
		for key, inner := range content {
			if key == "address" {
				key = name
			}
			if err := collect(inner, key, found); err != nil {
				return err
			}
		}
	case []any:
		return errors.Join(collectNamed(content, found)...)
	case string:
		a, err := chain.ParseAddress(content)
		if err != nil {
			return nil //nolint:nilerr // Much else stands in such a file.
		}
		if other, twice := found[plainName(name)]; twice && other != a && wanted(plainName(name)) {
			return fmt.Errorf("%s has two addresses, %s and %s", name, other, a)
		}
		found[plainName(name)] = a
	}
	return nil
}

// collectNamed reads a list of objects that carry their names: {"name": "DataStore", "address": "0x…"}.
func collectNamed(list []any, found map[string]chain.Address) (problems []error) {
	for _, element := range list {
		object, _ := element.(map[string]any)
		name := ""
		for _, key := range []string{"contractName", "name"} {
			if text, is := object[key].(string); is {
				name = text
			}
		}
		problems = append(problems, collect(element, name, found))
	}
	return problems
}

// wanted reports whether a name is one that the keeper is configured with.
func wanted(name string) bool {
	for _, s := range (gmx.Config{}).Settings() {
		if plainName(s.Name) == name {
			return true
		}
	}
	return false
}

// plainName is a name without regard to case and to what joins its words.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
