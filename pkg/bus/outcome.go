package bus

import (
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
)

// outcome is what one try to write a batch tells about that try.
type outcome int

const (
	written  outcome = iota // acknowledged
	refused                 // certainly not written by this try; the next may succeed
	unclear                 // may have been written by this try
	rejected                // certainly not written by this try, and never will be
	lost                    // the brokers' memory of this producer is not ours: nothing it says about this batch can be relied on
)

// outcomeOf classifies the end of a try. Whatever is not known to be harmless is unclear.
func outcomeOf(err error) outcome {
	if err == nil {
		return written
	}
	if _, unsent := errors.AsType[*dialError](err); unsent {
		return refused
	}
	if _, unroutable := errors.AsType[*rawproduce.Error](err); unroutable {
		return refused // the library knows no leader to send it to
	}
	code, isCode := errors.AsType[kafka.Error](err)
	if !isCode {
		return unclear
	}
	switch code {
	case kafka.InvalidMessage, kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.BrokerNotAvailable,
		kafka.ReplicaNotAvailable, kafka.NotEnoughReplicas, kafka.FencedLeaderEpoch, kafka.UnknownLeaderEpoch, kafka.ThrottlingQuotaExceeded:
		return refused
	case kafka.InvalidMessageSize, kafka.MessageSizeTooLarge, kafka.InvalidTopic, kafka.RecordListTooLarge, kafka.InvalidRequiredAcks,
		kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.InvalidTimestamp, kafka.UnsupportedVersion,
		kafka.InvalidRequest, kafka.UnsupportedForMessageFormat, kafka.PolicyViolation, kafka.InvalidRecord:
		return rejected
	case kafka.OutOfOrderSequenceNumber, kafka.DuplicateSequenceNumber, kafka.InvalidProducerEpoch, kafka.InvalidTransactionState,
		kafka.InvalidProducerIDMapping, kafka.UnknownProducerId, kafka.ProducerFenced:
		return lost
	default:
		return unclear
	}
}

// unknownOutcomeError says that a batch may be in its partition, or not, or arrive yet.
type unknownOutcomeError struct {
	topic     string
	partition int
	records   int
	cause     error
}

func (e *unknownOutcomeError) Error() string {
	return fmt.Sprintf("it is unknown whether a batch of %d records was written to %s/%d (read the partition's tail, then go on with a new producer): %v",
		e.records, e.topic, e.partition, e.cause)
}

func (e *unknownOutcomeError) Unwrap() error { return e.cause }

// OutcomeUnknown tells whether an error of Produce leaves open if a batch was written. The Producer is then of no further use: it refuses every
// later batch with an error for which this is also true.
func OutcomeUnknown(err error) bool {
	_, is := errors.AsType[*unknownOutcomeError](err)
	return is
}
