package wire

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
)

// Topic describes one topic of a keeper: what docs/topics.md lists and what the one-shot of a deployment creates.
type Topic struct {
	Name       string
	Key        string
	Partitions int
	Retention  time.Duration // 0 = for ever
	Writer     string
	Readers    string
}

// LogTopic carries the chain: one writer, kept for ever unless keeper.log_retention is set, never compacted.
func LogTopic(chainID uint64) string { return topicName(chainID, "log") }

// PriceTopic carries price reports.
func PriceTopic(chainID uint64) string { return topicName(chainID, "price") }

// JobTopic carries jobs from planner to sender.
func JobTopic(chainID uint64) string { return topicName(chainID, "job") }

// ResultTopic carries what became of jobs.
func ResultTopic(chainID uint64) string { return topicName(chainID, "result") }

// DeadLetterTopic carries records nobody could understand, jobs that were given up, and what endpoints say against each
// other ([Disputes]).
func DeadLetterTopic(chainID uint64) string { return topicName(chainID, "dlq") }

func topicName(chainID uint64, what string) string {
	return fmt.Sprintf("perp.%d.%s.v1", chainID, what)
}

// Topics lists the topics of a keeper with logPartitions partitions for the chain and jobPartitions for jobs and
// results.
func Topics(chainID uint64, logPartitions, jobPartitions int) []Topic {
	const day = 24 * time.Hour
	return []Topic{
		{LogTopic(chainID), "routing key: account, market, or 32 zero bytes", logPartitions, 0, "scanner",
			"statevm, sender and console (evidence), scanner (its own tail), operators (planner: assignment only)"},
		{PriceTopic(chainID), "token", 1, 7 * day, "scanner (price feed)", "planner, sender"},
		{JobTopic(chainID), "signer", jobPartitions, 7 * day, "planner",
			"sender, console (monitor), operators"},
		{ResultTopic(chainID), "job id", jobPartitions, 30 * day, "sender", "console, operators"},
		{DeadLetterTopic(chainID), "source topic", 1, 30 * day, "any", "operator"},
	}
}

// Settings are Kafka's settings of the topic, by their names: what is written stays for as long as it is kept, under
// its own offset, and as it was written. What depends on the cluster (copies, largest batch) is package bus's to know.
func (t Topic) Settings() map[string]string {
	retention := "-1"
	if t.Retention > 0 {
		retention = strconv.FormatInt(t.Retention.Milliseconds(), 10)
	}
	return map[string]string{
		"cleanup.policy": "delete", "retention.ms": retention, "retention.bytes": "-1",
		"unclean.leader.election.enable": "false", // a leader that was not in sync lacks what was acknowledged
		"compression.type":               "producer",
		// Readers find where to begin by the times that writers stamp; the brokers' own index would be of other times.
		"message.timestamp.type": "CreateTime",
	}
}

// Partition maps a routing key to a partition of a topic. It is fixed for ever: rows live where their key points. The
// zero key (what belongs to the whole exchange) is partition 0.
func Partition(key chain.Hash, partitions int) int {
	if key.IsZero() {
		return 0
	}
	sum := chain.Keccak256(key[:])
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(partitions))
}

// SignerPartition maps a signer to the partition of the job topic that has its jobs. In worker-queue mode the signer is
// worked by the partition's owner, or by another sender while that one is gone.
func SignerPartition(signer chain.Address, partitions int) int {
	return Partition(signer.Hash(), partitions)
}
