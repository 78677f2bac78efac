package bus

import (
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
)

// outcome is the result of one try to write a batch.
type outcome int

const (
	written  outcome = iota // acknowledged
	refused                 // certainly not written by this try; the next may succeed
	unclear                 // may have been written by this try
	rejected                // certainly not written by this try, and never will be
	// lost: the brokers' state of this producer is not ours; nothing in it about this batch can be relied on.
	lost
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
	if code, isCode := errors.AsType[kafka.Error](err); isCode {
		if known, ok := outcomeOfCode[code]; ok {
			return known
		}
	}
	return unclear
}

// outcomeOfCode is what brokers' answers mean; the codes that are not here are unclear.
var outcomeOfCode = map[kafka.Error]outcome{
	kafka.InvalidMessage:          refused,
	kafka.UnknownTopicOrPartition: refused,
	kafka.LeaderNotAvailable:      refused,
	kafka.NotLeaderForPartition:   refused,
	kafka.BrokerNotAvailable:      refused,
	kafka.ReplicaNotAvailable:     refused,
	kafka.NotEnoughReplicas:       refused,
	kafka.FencedLeaderEpoch:       refused,
	kafka.UnknownLeaderEpoch:      refused,
	kafka.ThrottlingQuotaExceeded: refused,

	kafka.InvalidMessageSize:          rejected,
	kafka.MessageSizeTooLarge:         rejected,
	kafka.InvalidTopic:                rejected,
	kafka.RecordListTooLarge:          rejected,
	kafka.InvalidRequiredAcks:         rejected,
	kafka.TopicAuthorizationFailed:    rejected,
	kafka.ClusterAuthorizationFailed:  rejected,
	kafka.InvalidTimestamp:            rejected,
	kafka.UnsupportedVersion:          rejected,
	kafka.InvalidRequest:              rejected,
	kafka.UnsupportedForMessageFormat: rejected,
	kafka.PolicyViolation:             rejected,
	kafka.InvalidRecord:               rejected,

	kafka.OutOfOrderSequenceNumber: lost,
	kafka.DuplicateSequenceNumber:  lost,
	kafka.InvalidProducerEpoch:     lost,
	kafka.InvalidTransactionState:  lost,
	kafka.InvalidProducerIDMapping: lost,
	kafka.UnknownProducerId:        lost,
	kafka.ProducerFenced:           lost,
}

// unknownOutcomeError reports that a batch may be in its partition, or not, or arrive yet.
type unknownOutcomeError struct {
	topic     string
	partition int
	records   int
	cause     error
}

func (e *unknownOutcomeError) Error() string {
	return fmt.Sprintf("it is unknown whether a batch of %d records was written to %s/%d (read the partition's "+
		"tail, then go on with a new producer): %v",
		e.records, e.topic, e.partition, e.cause)
}

func (e *unknownOutcomeError) Unwrap() error { return e.cause }

// OutcomeUnknown reports whether an error of Produce leaves open if a batch was written. The Producer is then of no
// further use: it refuses every later batch with an error for which this is also true.
func OutcomeUnknown(err error) bool {
	_, is := errors.AsType[*unknownOutcomeError](err)
	return is
}
