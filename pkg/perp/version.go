package perp

import "perpkeeper/pkg/chain"

// Version is a version of the exchange's contracts, as far as their rules differ. A newer one is larger.
type Version uint8

// The versions. Those before v2.2b have its rules.
const (
	V22b Version = 1
	V22c Version = 2
)

// String is the version's name.
func (v Version) String() string {
	if v == V22c {
		return "v2.2c"
	}
	return "v2.2b"
}

// handlerVersionKey is no word of the DataStore. Its rows hold what the code of handlers shows (gmx.Versions), so that
// whoever folds the topic again gets the same state: one for each handler, and one without arguments for the handler
// that would be called.
var handlerVersionKey = BaseKey("HANDLER_VERSION")

// HandlerVersion is the parameter that says which version a handler is of; of the zero address it says which one the
// handler is of that would be called, whose rules hold for verdicts.
func HandlerVersion(handler chain.Address, v Version) Parameter {
	p := Parameter{Key: handlerVersionKey, Value: chain.U64(uint64(v)).Bytes32(), Source: FromCall}
	if !handler.IsZero() {
		p.Key = argued(handlerVersionKey, handler.Hash())
	}
	return p
}

// versionOf is the version of a handler; of the zero address, of the one that would be called.
func versionOf(rows Rows, handler chain.Address) (v Version, known bool) {
	p, known := rows.Get(HandlerVersion(handler, 0).RowKey()).(Parameter)
	return Version(p.Value[len(p.Value)-1]), known
}

// versionInForce is the version that verdicts are by. Before it is known it is the oldest one: nothing is sent before,
// because it is compared with the chain together with the words of each market (see [Audit]).
func versionInForce(rows Rows) Version {
	v, known := versionOf(rows, chain.Address{})
	if !known {
		return V22b
	}
	return v
}
