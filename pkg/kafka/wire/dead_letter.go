package wire

import (
	"slices"
	"strconv"
	"strings"
)

// mostReason is how many bytes of a reason are kept.
const mostReason = 1024

// Legible is a reason as it can be shown: contracts give any bytes, and messages hold text of a certain length.
func Legible(reason string) string {
	valid := strings.ToValidUTF8(reason, "\uFFFD")
	return strings.ToValidUTF8(valid[:min(len(valid), mostReason)], "")
}

// DeadLetter is a record of a topic as it goes to the dead letter topic: untouched, with where it came from and why in
// further headers.
func DeadLetter(topic string, r Record, why string) Record {
	return Record{Key: []byte(topic), Value: r.Value, Headers: append(slices.Clone(r.Headers),
		Header{Key: "source.partition", Value: []byte(strconv.Itoa(r.Partition))},
		Header{Key: "source.offset", Value: []byte(strconv.FormatInt(r.Offset, 10))},
		Header{Key: "source.key", Value: r.Key},
		Header{Key: "error", Value: []byte(Legible(why))},
	)}
}

// Disputes is the source of dead letters that are no record of a topic: answers of endpoints that others contradict.
const Disputes = "endpoint"

// Disputed is a dispute about an endpoint's answer, as JSON, as it goes to the dead letter topic.
func Disputed(endpoint, why string, dispute []byte) Record {
	return Record{Key: []byte(Disputes), Value: dispute, Headers: []Header{
		{Key: "endpoint", Value: []byte(endpoint)}, {Key: "error", Value: []byte(Legible(why))}}}
}
