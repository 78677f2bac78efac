package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/programs"
	"perpkeeper/test/rig"
)

// parts are what a single process needs to start: a chain, a broker with topics, a migrated database.
type parts struct {
	env    map[string]string
	folder string
}

const signer = "0xBcd4042DE499D14e55001CcbB24a551F3b954096"

// newParts starts the parts and prepares topics and schema.
func newParts(t *testing.T) parts {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	d := rig.NewExchange(t, devnet.DefaultConfig())
	contracts := d.Deployment().Contracts
	p := parts{folder: folder, env: map[string]string{
		"KEEPER_CHAIN_ID": "1337", "CHAIN_URLS": d.RPC(), "KAFKA_BROKERS": rig.Broker(t).Addr(),
		"POSTGRES_URL":        pgtest.URL(t),
		"VENUE_DATA_STORE":    contracts.DataStore.Hex(),
		"SCANNER_START_BLOCK": "1", "SCANNER_PRICE_URL": d.Feed(),
		"KEEPER_SIGNERS":  signer,
		"SIGNER_DEV":      "true",
		"SIGNER_DEV_KEYS": "0xf214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897",
		"LOG_FORMAT":      "console",
	}}
	if code, out := p.run(t, "keeperctl", nil, "prepare"); code != 0 {
		t.Fatalf("keeperctl prepare: exit code %d: %s", code, out)
	}
	return p
}

// run runs a program with some settings changed until it ends, and returns its exit code and what it said. A program
// that does not end by itself is ended, with exit code -1.
func (p parts) run(t *testing.T, program string, change map[string]string, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.folder, program), args...)
	cmd.Env = p.environment(change)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

func (p parts) environment(change map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for key, value := range p.env {
		if changed, ok := change[key]; ok {
			value = changed
		}
		env = append(env, "PERPKEEPER_"+key+"="+value)
	}
	for key, value := range change {
		if _, known := p.env[key]; !known {
			env = append(env, "PERPKEEPER_"+key+"="+value)
		}
	}
	return env
}

// complaint returns the lines in which the program itself says why it ended.
func complaint(program, out string) (lines []string) {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, program+": ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Wrong configuration and unusable surroundings: one clear line each, and a non-zero exit.
func TestRefusals(t *testing.T) {
	p := newParts(t)
	stranger, elsewhere := wrongly(t, p.env["POSTGRES_URL"])
	forgetful := forgetfulBroker(t)
	for _, c := range []struct {
		name, program string
		change        map[string]string
		code          int
		says          []string
	}{
		{"unknown key", "scanner", map[string]string{"SCANNER_START_BLOK": "1"}, 2,
			[]string{"SCANNER_START_BLOK", "--help"}},
		{"bad value", "planner", map[string]string{"PLANNER_SWEEP_INTERVAL": "soon"}, 2,
			[]string{"PLANNER_SWEEP_INTERVAL", "soon"}},
		{"no signer", "planner", map[string]string{"KEEPER_SIGNERS": ""}, 2, []string{"keeper.signers"}},
		{"raw key without dev", "sender", map[string]string{"SIGNER_DEV": "false"}, 2, []string{"signer"}},
		{"wrong chain id", "scanner", map[string]string{"KEEPER_CHAIN_ID": "56"}, 1, []string{"1337", "56"}},
		{"missing topic: scanner", "scanner",
			map[string]string{"KEEPER_CHAIN_ID": "1337", "KAFKA_BROKERS": rig.Broker(t).Addr()}, 1,
			[]string{"perp.1337."}},
		{"missing topic: statevm", "statevm", map[string]string{"KAFKA_BROKERS": rig.Broker(t).Addr()}, 1,
			[]string{"perp.1337."}},
		{"missing topic: planner", "planner", map[string]string{"KAFKA_BROKERS": rig.Broker(t).Addr()}, 1,
			[]string{"perp.1337."}},
		{"missing topic: sender", "sender", map[string]string{"KAFKA_BROKERS": rig.Broker(t).Addr()}, 1,
			[]string{"perp.1337."}},
		{"wrong partitions", "scanner", map[string]string{"KEEPER_LOG_PARTITIONS": "3"}, 1,
			[]string{"perp.1337.log.v1", "4", "3"}},
		{"topic is not kept: scanner", "scanner", map[string]string{"KAFKA_BROKERS": forgetful}, 1,
			[]string{".v1 has retention.ms=3600000", "kafka-configs.sh"}},
		{"topic is not kept: statevm", "statevm", map[string]string{"KAFKA_BROKERS": forgetful}, 1,
			[]string{"log.v1", "retention.ms=-1", "kafka-configs.sh"}},
		{"topic is not kept: planner", "planner", map[string]string{"KAFKA_BROKERS": forgetful}, 1,
			[]string{"log.v1", "retention.ms=-1", "kafka-configs.sh"}},
		{"topic is not kept: sender", "sender", map[string]string{"KAFKA_BROKERS": forgetful}, 1,
			[]string{"job.v1", "retention.ms=604800000", "kafka-configs.sh"}},
		{"topic is not kept: prepare", "keeperctl prepare", map[string]string{"KAFKA_BROKERS": forgetful}, 1,
			[]string{"log.v1", "retention.ms=-1"}},
		{"wrong password: statevm", "statevm", map[string]string{"POSTGRES_URL": stranger}, 1,
			[]string{"password", "postgres.url"}},
		{"wrong password: planner", "planner", map[string]string{"POSTGRES_URL": stranger}, 1,
			[]string{"password", "postgres.url"}},
		{"wrong database: sender", "sender", map[string]string{"POSTGRES_URL": elsewhere}, 1,
			[]string{"nowhere", "postgres.url"}},
		{"wrong password: prepare", "keeperctl prepare", map[string]string{"POSTGRES_URL": stranger}, 1,
			[]string{"password", "postgres.url"}},
		{"no schema", "statevm", map[string]string{"POSTGRES_URL": pgtest.EmptyURL(t)}, 1,
			[]string{"schema", "keeperctl"}},
		{"schema too new: statevm", "statevm", map[string]string{"POSTGRES_URL": pgtest.NewerURL(t)}, 1,
			[]string{"schema", "new"}},
		{"schema too new: planner", "planner", map[string]string{"POSTGRES_URL": pgtest.NewerURL(t)}, 1,
			[]string{"schema", "new"}},
		{"schema too new: sender", "sender", map[string]string{"POSTGRES_URL": pgtest.NewerURL(t)}, 1,
			[]string{"schema", "new"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, args, _ := strings.Cut(c.program, " ")
			code, out := p.run(t, program, c.change, strings.Fields(args)...)
			lines := complaint(program, out)
			if code != c.code || len(lines) != 1 {
				t.Fatalf("exit code %d, want %d; said:\n%s", code, c.code, out)
			}
			for _, word := range c.says {
				if !strings.Contains(lines[0], word) {
					t.Errorf("%q does not say %q", lines[0], word)
				}
			}
		})
	}
}

// What is away may come back: the process waits, not ready, and says for what.
func TestWaitsForWhatIsAway(t *testing.T) {
	p := newParts(t)
	nowhere := programs.FreeAddress(t)
	for _, c := range []struct {
		name, program string
		change        map[string]string
		says          string
	}{
		{"node", "scanner", map[string]string{"CHAIN_URLS": "http://" + nowhere}, nowhere},
		{"broker", "scanner", map[string]string{"KAFKA_BROKERS": nowhere}, nowhere},
		{"broker", "statevm", map[string]string{"KAFKA_BROKERS": nowhere}, nowhere},
		{"broker", "planner", map[string]string{"KAFKA_BROKERS": nowhere}, nowhere},
		{"broker", "sender", map[string]string{"KAFKA_BROKERS": nowhere}, nowhere},
		{"database", "statevm", map[string]string{"POSTGRES_URL": "postgres://keeper:hidden@" + nowhere + "/keeper"},
			nowhere},
		{"database", "planner", map[string]string{"POSTGRES_URL": "postgres://keeper:hidden@" + nowhere + "/keeper"},
			nowhere},
		{"database", "sender", map[string]string{"POSTGRES_URL": "postgres://keeper:hidden@" + nowhere + "/keeper"},
			nowhere},
		{"node", "sender", map[string]string{"CHAIN_URLS": "http://" + nowhere}, nowhere},
	} {
		t.Run(c.program+" without "+c.name, func(t *testing.T) {
			address := programs.FreeAddress(t)
			c.change["HTTP_LISTEN"] = address
			cmd := exec.Command(filepath.Join(p.folder, c.program))
			cmd.Env = p.environment(c.change)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			text := awaitReason(t, address, c.says, ended)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended: // only now is what it said at rest
				if err != nil {
					t.Errorf("asked to stop, it ended with %v:\n%s", err, said.String())
				}
				if strings.Contains(text+said.String(), "hidden") {
					t.Error("the password was printed")
				}
			case <-time.After(patience):
				_ = cmd.Process.Kill()
				t.Error("asked to stop, it did not")
			}
		})
	}
}

// wrongly is the database's address with another password, and with another database.
func wrongly(t *testing.T, address string) (stranger, elsewhere string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	was, path := u.User, u.Path
	u.User = url.UserPassword(was.Username(), "guessed")
	stranger = u.String()
	u.User, u.Path = was, "/nowhere"
	if stranger == u.String() || path == u.Path {
		t.Fatal("that is the right address")
	}
	return stranger, u.String()
}

// forgetfulBroker is a broker whose topics were made by somebody who keeps records for an hour.
func forgetfulBroker(t *testing.T) string {
	t.Helper()
	address := rig.Broker(t).Addr()
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{address}
	client := rig.Kafka(t, cfg)
	specs := bus.Specs(wire.Config{ChainID: 1337, LogPartitions: 4, JobPartitions: 4}.Topics()...)
	for _, s := range specs {
		s.Config["retention.ms"] = "3600000"
	}
	if err := client.Ensure(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	return address
}

// awaitReason polls the readiness page until it names what the process waits for.
func awaitReason(t *testing.T, address, reason string, ended <-chan error) (text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if page, err := get(ctx, "http://"+address+"/readyz"); err == nil {
			if text = page; strings.Contains(text, reason) {
				return text
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended instead of waiting: %v", err)
		case <-ctx.Done():
			t.Fatalf("not ready, and never said why; last: %q", text)
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
