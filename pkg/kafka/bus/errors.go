package bus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"
)

// noTopicError reports that a topic or one of its partitions does not exist.
type noTopicError struct {
	topic      string
	partition  int // the one asked for
	partitions int // how many there are; 0 = no topic
}

func (e *noTopicError) Error() string {
	if e.partitions == 0 {
		return fmt.Sprintf("topic %s does not exist (services do not create topics; create it first)", e.topic)
	}
	return fmt.Sprintf("topic %s has no partition %d (it has %d)", e.topic, e.partition, e.partitions)
}

// NoTopic reports whether an error says that a topic, or the partition asked for, does not exist.
func NoTopic(err error) bool {
	_, is := errors.AsType[*noTopicError](err)
	return is
}

// GapError stops a Reader: offsets that it must deliver are not in the log. They were deleted, or lost.
type GapError struct {
	Topic     string
	Partition int
	Want      int64 // the next offset to be delivered
	Got       int64 // the first offset that is there
}

func (e *GapError) Error() string {
	return fmt.Sprintf("%s/%d: offsets %d to %d are missing from the log", e.Topic, e.Partition, e.Want, e.Got-1)
}

// BeyondEndError stops a Reader: its next offset is beyond the end of the log. Either it was never written, or the log
// lost its tail.
type BeyondEndError struct {
	Topic     string
	Partition int
	Want      int64 // the next offset to be delivered
	End       int64 // the offset the next record will get
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("%s/%d: offset %d is beyond the end of the log at %d", e.Topic, e.Partition, e.Want, e.End)
}

// LostLogError ends a Producer: a batch was acknowledged below one that it had written before. The log has lost its
// tail, or was deleted and made anew.
type LostLogError struct {
	Topic     string
	Partition int
	Offset    int64 // of the batch
	End       int64 // where the log ended after this producer's batch before
}

func (e *LostLogError) Error() string {
	return fmt.Sprintf("%s/%d: a batch got offset %d, and the one before ended at %d: the log has lost its end, or "+
		"was deleted and made anew",
		e.Topic, e.Partition, e.Offset, e.End)
}

// LostLog reports whether an error says that a log is not the one that was read or written until now: it is gone, ends
// before what is known to have been in it, or holds something else there.
func LostLog(err error) bool {
	_, lost := errors.AsType[*LostLogError](err)
	_, beyond := errors.AsType[*BeyondEndError](err)
	_, rewritten := errors.AsType[*RewrittenError](err)
	return lost || beyond || rewritten || NoTopic(err)
}

// RewrittenError stops a Reader that watches for it (see [Reader.Watch]): the record it read last is another one now.
// The log has lost its tail and was written on from there.
type RewrittenError struct {
	Topic     string
	Partition int
	Offset    int64 // of the record
}

func (e *RewrittenError) Error() string {
	return fmt.Sprintf("%s/%d: the record at offset %d is another one than was read there: the log has lost its end "+
		"and was written again",
		e.Topic, e.Partition, e.Offset)
}

// ForeignBatchError stops a Reader: a batch is not what this package writes, and delivering or skipping it could both
// be wrong.
type ForeignBatchError struct {
	Topic     string
	Partition int
	Offset    int64 // the offset the Reader stands at
	Reason    string
}

func (e *ForeignBatchError) Error() string {
	return fmt.Sprintf("%s/%d: cannot read on at offset %d: %s", e.Topic, e.Partition, e.Offset, e.Reason)
}

// TooLargeError refuses a batch before anything is sent: it is larger than Config.MaxBytes, before compression.
type TooLargeError struct {
	Topic    string
	Records  int
	Size     int // bytes before compression
	MaxBytes int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: a batch of %d records has %d bytes, and max_bytes is %d (write less at once, or raise "+
		"it and the topic's max.message.bytes)",
		e.Topic, e.Records, e.Size, e.MaxBytes)
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
