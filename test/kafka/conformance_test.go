package kafka_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"perpkeeper/pkg/kafka/bus/bustest"
)

// script starts and stops the cluster that it has started.
const script = "./kafka.sh"

// The cluster of KAFKA_BROKERS; if it is the script's own, its brokers are stopped and killed as well.
func TestConformance(t *testing.T) {
	addresses := os.Getenv("KAFKA_BROKERS")
	if addresses == "" {
		t.Skip(`needs Apache Kafka: test/kafka/kafka.sh up, then eval "$(test/kafka/kafka.sh env)"`)
	}
	brokers := strings.Split(addresses, ",")
	cluster := bustest.Cluster{Brokers: brokers, Replication: min(3, len(brokers))}
	if own(addresses) {
		control(&cluster)
	} else {
		t.Log("not a cluster of kafka.sh: its brokers are left alone")
	}
	bustest.Run(t, cluster)
}

func own(addresses string) bool {
	env, err := exec.Command(script, "env").Output()
	return err == nil && strings.TrimSpace(string(env)) == "export KAFKA_BROKERS="+addresses
}

func control(cluster *bustest.Cluster) {
	cluster.Stop = func(t testing.TB) { run(t, "stop") }
	cluster.Crash = func(t testing.TB) { run(t, "kill") }
	cluster.Start = func(t testing.TB) { run(t, "start") }
	if len(cluster.Brokers) < 2 {
		return
	}
	cluster.MoveLeader = func(t testing.TB, topic string, partition int) {
		moveLeader(t, cluster.Brokers, topic,
			partition)
	}
	cluster.CrashLeader = func(t testing.TB, topic string, partition int) (restore func()) {
		id := strconv.Itoa(int(leader(t, client(t, cluster.Brokers), topic, partition).Leader))
		run(t, "kill", id)
		return func() { run(t, "start", id) }
	}
}

func run(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command(script, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", script, strings.Join(args, " "), err, out)
	}
}

func client(t testing.TB, brokers []string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func leader(t testing.TB, c *kgo.Client, topic string, partition int) kmsg.MetadataResponseTopicPartition {
	t.Helper()
	request := kmsg.NewPtrMetadataRequest()
	name := kmsg.NewMetadataRequestTopic()
	name.Topic = &topic
	request.Topics = append(request.Topics, name)
	answer, err := request.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range answer.Topics[0].Partitions {
		if int(p.Partition) == partition {
			return p
		}
	}
	t.Fatalf("no partition %d in %s", partition, topic)
	return kmsg.MetadataResponseTopicPartition{}
}

// moveLeader puts another replica first and has it elected, as an operator would before maintenance.
func moveLeader(t testing.TB, brokers []string, topic string, partition int) {
	t.Helper()
	c := client(t, brokers)
	before := leader(t, c, topic, partition)
	replicas := slices.DeleteFunc(slices.Clone(before.Replicas), func(id int32) bool { return id == before.Leader })
	reassign(t, c, topic, partition, append(replicas, before.Leader))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for leader(t, c, topic, partition).Leader == before.Leader {
		if err := elect(ctx, c, topic, partition); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("the leader never moved")
		}
	}
}

func reassign(t testing.TB, c *kgo.Client, topic string, partition int, replicas []int32) {
	t.Helper()
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = int32(partition), replicas
	rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	rt.Topic, rt.Partitions = topic, []kmsg.AlterPartitionAssignmentsRequestTopicPartition{p}
	request := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	request.TimeoutMillis, request.Topics = 10_000, []kmsg.AlterPartitionAssignmentsRequestTopic{rt}
	answer, err := request.RequestWith(t.Context(), c)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("reassigning %s/%d: %v", topic, partition, err)
	}
}

// elect asks for the first replica to become the leader; that it is one already, or not in sync yet, is no error.
func elect(ctx context.Context, c *kgo.Client, topic string, partition int) error {
	rt := kmsg.NewElectLeadersRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{int32(partition)}
	request := kmsg.NewPtrElectLeadersRequest()
	request.ElectionType, request.TimeoutMillis, request.Topics = 0, 10_000, []kmsg.ElectLeadersRequestTopic{rt}
	answer, err := request.RequestWith(ctx, c)
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}
