package gmx

import (
	"errors"
	"strings"

	"perpkeeper/pkg/chain"
)

// PIPE-12: an event whose name this build does not know is sorted by what a wrong guess costs, and only its items can
// say it, by their names. Where one of them names a position, an order, a market or an account, rows may follow from
// it, and whoever keeps these rows stops there. All others are configuration or administration: they are passed over.
// Topics tell nothing: they are as often the id of a workflow, or its owner, as an account.

// touched is what an event touches, by the names of its items.
type touched struct {
	item                 string     // the first that names anything of that kind; empty for administration
	account, market, key chain.Hash // the first of each that is not zero; the account is what is called so, if any is
}

// touchedBy sorts the items of an event's data. Only addresses and words can name anything.
func touchedBy(data []byte, items []item) (t touched) {
	w := walker{data: data}
	for _, i := range items {
		var into *chain.Hash
		switch i.kind { //nolint:exhaustive // no other kind names anything
		case addressItem, arrayOf + addressItem:
			into = t.place(namedBy(i.name, false))
		case wordItem, arrayOf + wordItem:
			into = t.place(namedBy(i.name, true))
		}
		if into == nil {
			continue
		}
		if t.item == "" {
			t.item = string(i.name)
		}
		for _, word := range wordsOf(&w, i) {
			if into.IsZero() || string(i.name) == "account" { // the owner, beside others that take part
				*into = word
			}
		}
	}
	return t
}

// what is what the name of an item says that its value is.
type what uint8

const (
	nothing what = iota
	anAccount
	aMarket
	aKey
)

// place is where the value of an item goes; nil for one that names nothing.
func (t *touched) place(w what) *chain.Hash {
	switch w { //nolint:exhaustive // nothing has no place
	case anAccount:
		return &t.account
	case aMarket:
		return &t.market
	case aKey:
		return &t.key
	}
	return nil
}

// The ends of names, in small letters and without a plural's s, that say what a value is. Keys are words, and so is
// what a version may have padded to one.
var (
	accountNames = []string{"account", "trader"}
	marketNames  = []string{"market", "markettoken"}
	keyNames     = []string{"orderkey", "positionkey", "depositkey", "withdrawalkey", "shiftkey", "requestkey",
		"tradekey", "order", "position"}
)

// namedBy reads the name of an address, or of a word.
func namedBy(item []byte, word bool) what {
	name := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(string(item)), "_", ""), "s")
	ends := func(names []string) bool {
		for _, end := range names {
			if strings.HasSuffix(name, end) {
				return true
			}
		}
		return false
	}
	switch {
	case word && (name == "key" || ends(keyNames)):
		return aKey
	case ends(accountNames):
		return anAccount
	case ends(marketNames):
		return aMarket
	}
	return nothing
}

// wordsOf are the words of an address or word, or of an array of them.
func wordsOf(w *walker, i item) []chain.Hash {
	if i.kind < arrayOf {
		return []chain.Hash{w.word(i.at)}
	}
	return elements(w, i.at, i.kind-arrayOf, (*walker).word)
}

// pass returns nil for a log that was not identified and may be passed over, and why it stops whoever keeps rows. What
// cannot be read at all may say anything.
func (d *Decoder) pass(l *chain.Log, why error) error {
	unknown, is := errors.AsType[*UnknownEventError](why)
	if !is || unknown.Name == "" {
		return why
	}
	if d.ignored[unknown.Name] || d.passing {
		return nil
	}
	items, err := indexItems(l.Data, nil)
	if err != nil {
		return &DecodeError{Event: unknown.Name, Place: placeOf(l), Cause: err}
	}
	if unknown.Item = touchedBy(l.Data, items).item; unknown.Item != "" {
		return unknown
	}
	return nil
}

// Unknown returns the name of an event that this build neither knows nor is told to ignore, and that it passes over.
func (d *Decoder) Unknown(l chain.Log) (name string, is bool) {
	_, err := d.identify(&l)
	unknown, is := errors.AsType[*UnknownEventError](err)
	if !is || unknown.Name == "" || d.ignored[unknown.Name] || d.pass(&l, err) != nil {
		return "", false
	}
	return unknown.Name, true
}

// Everywhere reports whether a log of the EventEmitter goes to every partition of the log topic: what sets a parameter
// ([IsParameter]), and what this build does not understand. A later one may find that it is of any of them, and a
// rebuild with it finds it there. Who folds a partition asks [Concerns].
func Everywhere(l chain.Log) bool {
	if IsParameter(l) {
		return true
	}
	_, err := NewDecoder().identify(&l)
	return err != nil
}

// Concerns reports whether a log makes rows of a partition: one that holds the rows of a key, as own says. Where the
// log itself does not say whose it is, recorded does, the key of its record.
func Concerns(l chain.Log, recorded chain.Hash, own func(key chain.Hash) bool) bool {
	if IsParameter(l) {
		return true
	}
	topics, ok := emitterTopics(&l)
	if !ok {
		return own(recorded)
	}
	switch kind, known := eventKinds[l.Topics[1]]; {
	case !known || topics != kind.topics:
		return own(recorded)
	case kind.scope == global:
		return own(chain.Hash{})
	case kind.scope == ofMarket, kind.scope == ofAccount:
		return own(l.Topics[2])
	case kind.scope == ofOwner:
		return own(l.Topics[3])
	}
	return own(recorded)
}
