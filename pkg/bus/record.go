package bus

import "time"

// Record is one message of a partition.
type Record struct {
	// Key and Value may be nil, which is kept apart from empty.
	Key, Value []byte
	Headers    []Header

	// Time, Partition and Offset are set on what a Reader returns and ignored by Produce. Time is when the batch was handed to Produce, by
	// that process's clock, in whole milliseconds; what a record is about belongs into its value. (Brokers forget producers, and drop
	// old segments, by record time: a batch stamped with a time long past could lose both its protection from duplicates and itself.)
	Time      time.Time
	Partition int
	Offset    int64
}

// Header is one entry of a record's ordered list of headers; keys may repeat.
type Header struct {
	Key   string
	Value []byte
}
