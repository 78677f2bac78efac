package bus

import (
	"testing"

	"perpkeeper/lab/embedded/broker"
)

// A producer whose topic was deleted and made anew says so at its first batch, and takes no other, also where brokers
// take its sequence.
func TestProducerNoticesATopicMadeAnew(t *testing.T) {
	b := embedded(t, broker.Config{AnySequence: true})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	p := c.Producer(topic)
	produce(t, p, "0", "1")
	produce(t, p, "2")
	if err := b.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := c.Ensure(guarded(t), []TopicSpec{{Name: topic, Partitions: 1}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Produce(guarded(t), 0, valued("3")); !LostLog(err) {
			t.Fatalf("got %v", err)
		}
	}
	wantLog(t, c, topic, "3")
	p = c.Producer(topic)
	produce(t, p, "4")
	wantLog(t, c, topic, "3", "4")
}
