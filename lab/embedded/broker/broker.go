// Package broker is a Kafka-protocol broker inside this process, for the demo and for tests: no Java, no download, up
// in milliseconds.
//
// Guaranteed with a data directory: what was acknowledged is on disk, and is there again after the process was killed
// and started anew, as are topics and groups. Topics are never created by asking for them.
//
// Not guaranteed: it is no proof of how Apache Kafka behaves. There is no replication; several brokers are several
// addresses of one log. Producer sequences are kept in memory and saved when the broker is closed, so after a kill a
// batch whose reply was lost, and which is sent again, is written twice. One data directory serves one process at a
// time.
package broker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Config is where a broker listens and keeps its data. The zero Config is one broker on a free port of this machine
// that keeps nothing.
type Config struct {
	// DataDir keeps topics, records and groups over restarts; it is created if need be. Empty = memory.
	DataDir string
	// Listen has one address for each broker the cluster shall seem to have, to listen on and to be reached at,
	// host:port; port 0 picks a free one. Empty = one broker on a free port of 127.0.0.1. A cluster that is started
	// anew on its data needs the addresses it had.
	Listen []string
	// MinSessionTimeout is the shortest session timeout granted to group members; 0 = 6 s, as Apache Kafka has it.
	MinSessionTimeout time.Duration
	// AnySequence takes any first sequence from a producer that is not known, also into a topic that was made anew, as
	// Apache Kafka 4.1 does. For tests.
	AnySequence bool
}

// defaultMinSessionTimeout is Apache Kafka's group.min.session.timeout.ms.
const defaultMinSessionTimeout = 6 * time.Second

// Broker is a running broker, or a cluster of several.
type Broker struct{ cluster *kfake.Cluster }

// Start starts the broker. It fails when the address is taken or the data directory cannot be used.
func Start(cfg Config) (*Broker, error) {
	listen := cfg.Listen
	if len(listen) == 0 {
		listen = []string{"127.0.0.1:0"}
	}
	listeners, err := open(listen)
	if err != nil {
		return nil, err
	}
	used := 0
	opts := []kfake.Opt{
		kfake.NumBrokers(len(listeners)),
		kfake.ListenFn(func(string, string) (net.Listener, error) {
			used++
			return listeners[used-1], nil
		}),
		kfake.GroupMinSessionTimeout(cmp.Or(cfg.MinSessionTimeout, defaultMinSessionTimeout)),
	}
	if cfg.AnySequence {
		opts = append(opts, kfake.MaxVersions(kversion.V4_1_0()))
	}
	if cfg.DataDir != "" {
		opts = append(opts, kfake.DataDir(cfg.DataDir), kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		closeAll(listeners)
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	return &Broker{cluster: cluster}, nil
}

// open listens on every address or, if one of them is taken, on none. Doing it here and not in the library makes the
// error name the address.
func open(addresses []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err != nil {
			closeAll(listeners)
			return nil, fmt.Errorf("starting the embedded broker: %w", err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // nothing was served on it
	}
}

// Addr is the address of the first broker, host:port.
func (b *Broker) Addr() string { return b.Addrs()[0] }

// Addrs are the addresses of all brokers.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Close stops the broker and saves what a data directory keeps. Connections are cut.
func (b *Broker) Close() { b.cluster.Close() }

// Fault makes matching requests fail, for tests.
func (b *Broker) Fault(faults ...kfake.Fault) *kfake.FaultHandle { return b.cluster.Fault(faults...) }

// Refuse makes joining a group fail for want of a right, until lift is called, and has members join anew.
func (b *Broker) Refuse(group string) (lift func()) {
	return b.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.GroupAuthorizationFailed, Count: -1,
			When: func(request kmsg.Request) bool {
				join, is := request.(*kmsg.JoinGroupRequest)
				return is && join.Group == group
			}},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.RebalanceInProgress, Count: 1}).Remove
}

// Deny makes every use of a topic fail for want of a right, until lift is called.
func (b *Broker) Deny(topic string) (lift func()) {
	return b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata, kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets},
		Topic: topic, Err: kerr.TopicAuthorizationFailed, Count: -1}).Remove
}

// ControlKey answers the next request of a kind by a function, for tests; see the library for what the function may
// return.
func (b *Broker) ControlKey(key kmsg.Key, fn func(kmsg.Request) (kmsg.Response, error, bool)) {
	b.cluster.ControlKey(key.Int16(), fn)
}

// MoveTopicPartition makes another broker (counted from 0) the leader of a partition, for tests.
func (b *Broker) MoveTopicPartition(topic string, partition, node int) error {
	return b.cluster.MoveTopicPartition(topic, int32(partition), int32(node))
}

// DeleteRecords deletes a partition's records below an offset, for tests.
func (b *Broker) DeleteRecords(topic string, partition int, offset int64) error {
	return b.cluster.DeleteRecords(topic, int32(partition), offset)
}

// DeleteTopic deletes a topic with all it holds, for tests.
func (b *Broker) DeleteTopic(topic string) error { return b.cluster.DeleteTopic(topic) }

// DropExpired deletes what topics keep no longer by their settings, now and not within the hour, for tests. As in
// Apache Kafka, disk is given back by whole segments.
func (b *Broker) DropExpired() { b.cluster.ApplyRetention() }
