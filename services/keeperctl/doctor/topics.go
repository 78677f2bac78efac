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

func topicChecks() []check {
	return []check{
		{"kafka-reachable", "not-ready", true, noBrokers},
		{"topic-exists", "topic-settings", true, missingTopics},
		{"topic-partitions", "topic-settings", true, wrongPartitions},
		{"topic-settings", "topic-settings", true, wrongSettings},
		{"topic-leader", "topic-settings", true, leaderless},
		{"topic-isr", "topic-settings", true, outOfSync},
		{"topic-lag", "behind", true, laggingPartitions},
		{"topic-unsent", "monitor", true, unsentResults},
		{"topic-dead-letters", "dead-letters", true, deadLetters},
	}
}

func noBrokers(f *Facts) []fault {
	if f.Topics == nil || f.Topics.Error == nil {
		return nil
	}
	return []fault{{Failure, "", "the brokers do not answer: " + f.Topics.Error.Error(),
		"see whether Kafka runs, and whether kafka.brokers, its user and its certificate are right"}}
}

// topics judges every topic that there is.
func (f *Facts) topics(judge func(Topic) []fault) (found []fault) {
	if f.Topics == nil || f.Topics.Error != nil {
		return nil
	}
	for _, t := range f.Topics.All {
		if t.Error == nil {
			found = append(found, judge(t)...)
		}
	}
	return found
}

func missingTopics(f *Facts) (found []fault) {
	if f.Topics == nil || f.Topics.Error != nil {
		return nil
	}
	for _, t := range f.Topics.All {
		switch {
		case t.Missing:
			found = append(found, fault{Failure, t.Name, "there is no such topic", "run keeperctl prepare"})
		case t.Error != nil:
			found = append(found, fault{Failure, t.Name, "it cannot be looked at: " + t.Error.Error(),
				"see whether this user may describe it"})
		}
	}
	return found
}

func wrongPartitions(f *Facts) []fault {
	return f.topics(func(t Topic) []fault {
		if t.Missing || t.Partitions == t.Want {
			return nil
		}
		return []fault{{Failure, t.Name, fmt.Sprintf("it has %d partitions, and %d are configured", t.Partitions,
			t.Want),
			"the count is fixed for a topic's life: correct LOG_PARTITIONS or JOB_PARTITIONS"}}
	})
}

func wrongSettings(f *Facts) []fault {
	return f.topics(func(t Topic) []fault {
		if t.Missing || t.Partitions != t.Want || t.Settings == nil {
			return nil
		}
		return []fault{{Failure, t.Name, t.Settings.Error(), "run the command in brackets"}}
	})
}

func leaderless(f *Facts) []fault {
	return f.topics(func(t Topic) []fault {
		if t.Leaderless == 0 {
			return nil
		}
		return []fault{{Failure, t.Name, fmt.Sprintf("%d of its partitions have no leader", t.Leaderless),
			"bring the brokers back that hold them"}}
	})
}

func outOfSync(f *Facts) []fault {
	return f.topics(func(t Topic) []fault {
		if t.Missing || t.Leaderless > 0 || t.InSync >= t.Copies {
			return nil
		}
		return []fault{{Warning, t.Name, fmt.Sprintf("a partition has %d of its %d copies in sync", t.InSync, t.Copies),
			"bring the broker back that is away, or slow"}}
	})
}

func laggingPartitions(f *Facts) (found []fault) {
	if f.Topics == nil {
		return nil
	}
	for part, lag := range f.Topics.Lag {
		if lag > mostLag {
			found = append(found, fault{Warning, fmt.Sprintf("partition %d", part),
				fmt.Sprintf("statevm has %d records of the log topic before it", lag),
				"while a history is read that passes; else see whether statevm is ready, and scale it"})
		}
	}
	return found
}

func unsentResults(f *Facts) (found []fault) {
	if f.Topics == nil {
		return nil
	}
	for _, audience := range slices.Sorted(maps.Keys(f.Topics.Unsent)) {
		if waiting := f.Topics.Unsent[audience]; waiting > mostUnsent {
			found = append(found, fault{Warning, audience, fmt.Sprintf("this receiver has not been told %d results",
				waiting),
				"see whether the receiver answers: docker compose logs sender"})
		}
	}
	return found
}

func deadLetters(f *Facts) []fault {
	if f.Topics == nil || f.Topics.DeadLetters == 0 {
		return nil
	}
	return []fault{{Warning, "", fmt.Sprintf("%d dead letters in the last hour", f.Topics.DeadLetters),
		"keeperctl dlq list says what was given up and why"}}
}
