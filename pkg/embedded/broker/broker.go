// Package broker is a Kafka-protocol broker inside this process, for the demo and for tests: no Java, no download, up in milliseconds.
//
// Guaranteed with a data directory: what was acknowledged is on disk, and is there again after the process was killed and started anew, as are
// topics and groups. Topics are never created by asking for them.
//
// Not guaranteed: it is no proof of how Apache Kafka behaves. There is no replication; several brokers are several addresses of one log.
// Producer sequences are kept in memory and saved when the broker is closed, so after a kill a batch whose reply was lost, and which is sent
// again, is written twice. One data directory serves one process at a time.
package broker

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config says where a broker listens and keeps its data. The zero Config is one broker on a free port of this machine that keeps nothing.
type Config struct {
	// DataDir keeps topics, records and groups over restarts; it is created if need be. Empty = memory.
	DataDir string
	// Listen is the address to listen on and to be reached at; port 0 picks a free one. Empty = 127.0.0.1:0. With several brokers and a fixed port,
	// the others take the ports after it.
	Listen string
	// Brokers is how many brokers the cluster seems to have; 0 = 1.
	Brokers int
	// MinSessionTimeout is the shortest session timeout granted to group members; 0 = 6 s, as Apache Kafka has it.
	MinSessionTimeout time.Duration
}

// Broker is a running broker, or a cluster of several.
type Broker struct{ cluster *kfake.Cluster }

// Start starts the broker. It fails when the address is taken or the data directory cannot be used.
func Start(cfg Config) (*Broker, error) {
	host, ports, err := cfg.addresses()
	if err != nil {
		return nil, err
	}
	opts := []kfake.Opt{
		kfake.Ports(ports...),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return net.Listen(network, net.JoinHostPort(host, port))
		}),
		kfake.GroupMinSessionTimeout(max(cfg.MinSessionTimeout, 0)),
	}
	if cfg.MinSessionTimeout == 0 {
		opts = append(opts, kfake.GroupMinSessionTimeout(6*time.Second))
	}
	if cfg.DataDir != "" {
		opts = append(opts, kfake.DataDir(cfg.DataDir), kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	return &Broker{cluster: cluster}, nil
}

func (c Config) addresses() (host string, ports []int, err error) {
	listen := c.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", nil, fmt.Errorf("embedded broker: %q is not host:port", c.Listen)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", nil, fmt.Errorf("embedded broker: %q is not a port", text)
	}
	for i := range max(c.Brokers, 1) {
		if port == 0 {
			ports = append(ports, 0)
			continue
		}
		ports = append(ports, int(port)+i)
	}
	return host, ports, nil
}

// Addr is the address of the first broker, host:port.
func (b *Broker) Addr() string { return b.Addrs()[0] }

// Addrs are the addresses of all brokers.
func (b *Broker) Addrs() []string { return slices.Clone(b.cluster.ListenAddrs()) }

// Close stops the broker and saves what a data directory keeps. Connections are cut.
func (b *Broker) Close() { b.cluster.Close() }

// Fault makes matching requests fail, for tests.
func (b *Broker) Fault(faults ...kfake.Fault) *kfake.FaultHandle { return b.cluster.Fault(faults...) }

// ControlKey answers the next request of a kind by a function, for tests; see the library for what the function may return.
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
