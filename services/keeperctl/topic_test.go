package keeperctl

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// publish writes a message to a topic of the office.
func (o *office) publish(topic string, partition int, key []byte, m wire.Message) {
	o.t.Helper()
	r, err := wire.Encode(key, m, 1, 1)
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := o.Client.Producer(topic).Produce(o.t.Context(), partition, []bus.Record{r}); err != nil {
		o.t.Fatal(err)
	}
}

// line runs a whole command line on the office.
func (o *office) line(line string) (out, complaint string, code int) {
	o.t.Helper()
	o.t.Setenv("PERPKEEPER_KAFKA_BROKERS", strings.Join(o.kafka.Brokers, ","))
	return run(o.t, nil, strings.Fields(line)...)
}

func TestTopicCat(t *testing.T) {
	o := newOffice(t)
	logs, alice := wire.LogTopic(o.Keeper.ChainID), chain.Address{0xa1}
	for n := range uint64(3) {
		o.publish(logs, 1, alice[:],
			wire.Log{Log: chain.Log{Address: chain.Address{7}, Topics: []chain.Hash{{1}}, Block: n, Data: []byte{}}})
		o.publish(logs, 2, make([]byte, 32), wire.Finalized{Block: chain.BlockRef{Number: n, Hash: chain.Hash{9}}})
	}
	o.publish(wire.JobTopic(o.Keeper.ChainID), 0, []byte{0xb}, wire.Job{Job: lostJob(3)})
	o.write(withHeaders(bus.Record{Key: []byte("text"), Value: []byte{1}}, "t", hostile, "sv", "\x00\x01"))

	for line, want := range map[string]int{
		"topic cat log": 6, "topic cat perp.56.log.v1": 6, "topic cat log --partition 1": 3,
		"topic cat log --kind finalized": 3,
		"topic cat log --key 0xa1":       3, "topic cat log --from 2": 2, "topic cat log --from 1 --to 2": 2,
		"topic cat log --from 1h": 6,
		"topic cat log --from " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339): 0, "topic cat price": 0,
		"topic cat dlq --key text":    1,
		"topic cat dlq --output json": 1, "topic cat dlq --output json --decode": 1,
	} {
		out, complaint, code := o.line(line)
		if code != exitFine || strings.Count(out, "\n") != want {
			t.Errorf("%s: exit code %d, want %d lines:\n%s%s", line, code, want, out, complaint)
		}
		if found := obeyed(out); len(found) > 0 {
			t.Errorf("%s prints %q", line, found)
		}
	}
	out, _, _ := o.line("topic cat log --partition 2 --decode")
	wantTold(t, out, "2/0 20", "FINALIZED 0x0000", `"Number":2`)
	out, _, _ = o.line("topic cat dlq --decode")
	wantTold(t, out, "0/0 ", "unknown record", "0x01")
	out, _, _ = o.line("topic cat job --decode --output json")
	var shown struct {
		Kind, Key string
		Message   struct{ ID string }
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Kind != "JOB" || shown.Key != "0x0b" ||
		shown.Message.ID != lostJob(3).ID {
		t.Errorf("%s: %+v, %v", out, shown, err)
	}
	for line, want := range map[string]string{
		"topic cat": "name one topic", "topic cat jobs": `"jobs" is no topic`,
		"topic cat log --partition 9":    "--partition: perp.56.log.v1 has 4",
		"topic cat log --from yesterday": `--from: "yesterday" is no offset`,
		"topic":                          "usage: keeperctl topic cat TOPIC | tail TOPIC",
		"topic tail log --to 3":          "--to: unknown flag",
	} {
		if out, complaint, code := o.line(line); code != exitNotAsked || out != "" ||
			!strings.Contains(complaint, want) {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out, complaint)
		}
	}
}

// What comes is printed as it comes, from every partition, until somebody has seen enough.
func TestTopicTail(t *testing.T) {
	o := newOffice(t)
	o.t.Setenv("PERPKEEPER_KAFKA_BROKERS", strings.Join(o.kafka.Brokers, ","))
	topic := wire.ResultTopic(o.Keeper.ChainID)
	past := bus.Record{Key: []byte("past"), Headers: []bus.Header{{Key: "t", Value: []byte("RESULT")}}}
	if _, err := o.Client.Producer(topic).Produce(t.Context(), 0, []bus.Record{past}); err != nil {
		t.Fatal(err)
	}
	ctx, enough := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		var complaint bytes.Buffer
		ended <- Run(ctx, []string{"topic", "tail", "result", "--from", "0"}, IO{Out: write, Err: &complaint})
		_ = write.CloseWithError(io.EOF)
	}()
	seen := make(chan string, 10)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := read.Read(buffer)
			if err != nil {
				return
			}
			seen <- string(buffer[:n])
		}
	}()
	if line := <-seen; !strings.Contains(line, " RESULT past ") {
		t.Errorf("what was there: %q", line)
	}
	for p := range 2 {
		next := bus.Record{Key: []byte("next" + strconv.Itoa(p))}
		if _, err := o.Client.Producer(topic).Produce(t.Context(), p, []bus.Record{next}); err != nil {
			t.Fatal(err)
		}
		if line := <-seen; !strings.HasPrefix(line, strconv.Itoa(p)+"/") ||
			!strings.Contains(line, "next"+strconv.Itoa(p)) {
			t.Errorf("what came: %q", line)
		}
	}
	enough()
	if code := <-ended; code != exitFine {
		t.Errorf("interrupted: exit code %d", code)
	}
}
