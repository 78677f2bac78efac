package doctor

import (
	"fmt"
	"maps"
	"slices"
)

// How much may wait: a block is a handful of records, and comes every half second.
const (
	mostLag    = 5_000
	mostUnsent = 100
)

var topicChecks = []check{
	{"kafka-reachable", "not-ready", true, func(f *Facts, found report) {
		if f.Topics != nil && f.Topics.Error != nil {
			found(Failure, "", "the brokers do not answer: "+f.Topics.Error.Error(),
				"see whether Kafka runs, and whether kafka.brokers, its user and its certificate are right")
		}
	}},
	{"topic-exists", "topic-settings", true, eachTopic(func(t Topic, found report) {
		switch {
		case t.Missing:
			found(Failure, t.Name, "there is no such topic", "run keeperctl prepare")
		case t.Error != nil:
			found(Failure, t.Name, "it cannot be looked at: "+t.Error.Error(), "see whether this user may describe it")
		}
	})},
	{"topic-partitions", "topic-settings", true, eachTopic(func(t Topic, found report) {
		if t.described() && t.Partitions != t.Want {
			found(Failure, t.Name, fmt.Sprintf("it has %d partitions, and %d are configured", t.Partitions, t.Want),
				"correct LOG_PARTITIONS or JOB_PARTITIONS, or raise the topic's number as docs/runbooks/partitions.md "+
					"says")
		}
	})},
	{"topic-settings", "topic-settings", true, eachTopic(func(t Topic, found report) {
		if t.described() && t.Partitions == t.Want && t.Settings != nil {
			found(Failure, t.Name, t.Settings.Error(), "run the command in brackets")
		}
	})},
	{"topic-leader", "topic-settings", true, eachTopic(func(t Topic, found report) {
		if t.described() && t.Leaderless > 0 {
			found(Failure, t.Name, fmt.Sprintf("%d of its partitions have no leader", t.Leaderless),
				"bring the brokers back that hold them")
		}
	})},
	{"topic-isr", "topic-settings", true, eachTopic(func(t Topic, found report) {
		if t.described() && t.Leaderless == 0 && t.InSync < t.Copies {
			found(Warning, t.Name, fmt.Sprintf("a partition has %d of its %d copies in sync", t.InSync, t.Copies),
				"bring the broker back that is away, or slow")
		}
	})},
	{"topic-lag", "alerts", true, func(f *Facts, found report) {
		if f.Topics == nil {
			return
		}
		for part, lag := range f.Topics.Lag {
			if lag > mostLag {
				found(Warning, fmt.Sprintf("partition %d", part),
					fmt.Sprintf("statevm has %d records of the log topic before it", lag),
					"while a history is read that passes; else see whether statevm is ready, and scale it")
			}
		}
	}},
	{"topic-unsent", "monitor", true, func(f *Facts, found report) {
		if f.Topics == nil {
			return
		}
		for _, audience := range slices.Sorted(maps.Keys(f.Topics.Unsent)) {
			if waiting := f.Topics.Unsent[audience]; waiting > mostUnsent {
				found(Warning, audience, fmt.Sprintf("this receiver has not been told %d results", waiting),
					"see whether the receiver answers: docker compose logs console")
			}
		}
	}},
	{"topic-dead-letters", "jobs", true, func(f *Facts, found report) {
		if f.Topics != nil && f.Topics.DeadLetters > 0 {
			found(Warning, "", fmt.Sprintf("%d dead letters in the last hour", f.Topics.DeadLetters),
				"keeperctl dlq list says what was given up and why")
		}
	}},
}

// described reports whether it is there, and could be looked at.
func (t Topic) described() bool { return !t.Missing && t.Error == nil }

// eachTopic judges every topic, where the brokers answer.
func eachTopic(judge func(Topic, report)) func(*Facts, report) {
	return func(f *Facts, found report) {
		if f.Topics == nil || f.Topics.Error != nil {
			return
		}
		for _, t := range f.Topics.All {
			judge(t, found)
		}
	}
}
