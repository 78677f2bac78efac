package bus

import "perpkeeper/pkg/wire"

// Record is one message of a partition. It is the codec's own type, so that nothing is copied between reading and
// decoding.
type Record = wire.Record

// Header is one entry of a record's ordered list of headers; keys may repeat.
type Header = wire.Header
