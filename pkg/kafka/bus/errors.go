package bus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"
)

// errNoTopic reports that a topic or one of its partitions does not exist.
var errNoTopic = errors.New("does not exist")

// noTopic reports that there is no such partition among so many; none at all: no such topic.
func noTopic(topic string, partition, partitions int) error {
	if partitions == 0 {
		return fmt.Errorf("topic %s %w (services do not create topics; create it first)", topic, errNoTopic)
	}
	return fmt.Errorf("topic %s: partition %d %w (it has %d)", topic, partition, errNoTopic, partitions)
}

// NoTopic reports whether an error says that a topic, or the partition asked for, does not exist.
func NoTopic(err error) bool { return errors.Is(err, errNoTopic) }

var (
	// ErrGap stops a Reader: offsets that it must deliver are not in the log. They were deleted, or lost.
	ErrGap = errors.New("are missing from the log")

	// ErrForeignBatch stops a Reader: a batch is not what this package writes, and delivering or skipping it could both
	// be wrong.
	ErrForeignBatch = errors.New("cannot read on")

	// ErrTooLarge refuses a batch before anything is sent: it is larger than Config.MaxBytes, before compression.
	ErrTooLarge = errors.New("larger than max_bytes")

	// errBeyondEnd stops a Reader: its next offset is beyond the end of the log. Either it was never written, or the
	// log lost its tail.
	errBeyondEnd = errors.New("beyond the end of the log")

	// errRewritten stops a Reader that watches for it (see [Reader.Watch]): the record it read last is another one now.
	errRewritten = errors.New("the log has lost its end and was written again")

	// errLostEnd ends a Producer: a batch was acknowledged below one that it had written before.
	errLostEnd = errors.New("the log has lost its end, or was deleted and made anew")
)

// LostLog reports whether an error says that a log is not the one that was read or written until now: it is gone, ends
// before what is known to have been in it, or holds something else there.
func LostLog(err error) bool {
	return errors.Is(err, errLostEnd) || errors.Is(err, errBeyondEnd) || errors.Is(err, errRewritten) || NoTopic(err)
}

// Denied reports whether an error says that the brokers refuse this user what was asked. It goes on when an operator
// has given the right, and needs no start anew.
func Denied(err error) bool {
	code, isCode := errors.AsType[kafka.Error](err)
	return isCode && slices.Contains(denials, code)
}

var denials = []kafka.Error{
	kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.GroupAuthorizationFailed,
}

// final reports whether trying again is pointless.
func final(err error) bool {
	if NoTopic(err) {
		return true
	}
	code, isCode := errors.AsType[kafka.Error](err)
	return isCode && slices.Contains(finalCodes, code)
}

var finalCodes = []kafka.Error{
	kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.GroupAuthorizationFailed,
	kafka.SASLAuthenticationFailed,
	kafka.InvalidTopic, kafka.InvalidPartitionNumber, kafka.InvalidConfiguration, kafka.PolicyViolation,
	kafka.InvalidGroupId, kafka.InvalidSessionTimeout, kafka.UnsupportedVersion,
}
