package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
)

// childVar names the scenario that this binary plays when it is started by one of its own tests: Main exits, so it
// needs a process to itself.
const childVar = "SERVICE_TEST_SCENARIO"

func TestMain(m *testing.M) {
	if scenario, ok := scenarios[os.Getenv(childVar)]; ok {
		scenario()
		os.Exit(99) // Main does not return.
	}
	goleak.VerifyTestMain(m)
}

// scenarios are the mains that the tests start.
var scenarios = map[string]func(){
	"example": ExampleMain,
	"stubborn": func() {
		child(func(sh *service.Shell) error {
			sh.Go("rock", func(context.Context) error { select {} })
			return nil
		})
	},
	"fails to start": func() {
		child(func(sh *service.Shell) error {
			sh.OnStop("first", func(context.Context) error { return errors.New("cannot be closed") })
			return errors.New("connecting to kafka at 127.0.0.1:9092: connection refused (is the broker running? " +
				"set kafka.brokers)")
		})
	},
	"fails in two lines": func() {
		child(func(*service.Shell) error { return errors.Join(errors.New("one"), errors.New("two")) })
	},
	"panics": func() {
		child(func(sh *service.Shell) error {
			sh.Go("loop", func(context.Context) error { panic("boom") })
			return nil
		})
	},
	"panics in start": func() {
		child(func(sh *service.Shell) error {
			var config map[string]int
			config["x"] = 1 //nolint:staticcheck // the panic that is meant
			return nil
		})
	},
	"misdeclared": func() {
		service.Main("scanner", misdeclared{}, func(*service.Shell, misdeclared) error { return nil })
	},
	"tool": func() {
		service.Tool("keeperctl", "<command>", DefaultScannerConfig(),
			func(sh *service.Shell, cfg ScannerConfig, args []string) error {
				sh.Go("helper", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				sh.OnStop("store", func(context.Context) error { fmt.Println("closed"); return nil })
				fmt.Println(strings.Join(args, " "), cfg.Kafka.Brokers[0], sh.Addr() == "")
				if args[0] == "fail" {
					return errors.New("no such job (list them with: keeperctl delayed list)")
				}
				if args[0] == "guess" {
					return fmt.Errorf("delayed: %w", service.UsageError{Err: errors.New("guess what? name a job")})
				}
				if args[0] == "give-up" {
					return fmt.Errorf("waiting: %w", context.Canceled) // For a reason of its own: nobody has asked.
				}
				return nil
			})
	},
}

type misdeclared struct{ Poll time.Duration }

func (misdeclared) Validate() error { return nil }

func child(start func(*service.Shell) error) {
	service.Main("scanner", DefaultScannerConfig(), func(sh *service.Shell, _ ScannerConfig) error { return start(sh) })
}

// process is a running scenario.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout strings.Builder
	stderr *bufio.Scanner
	seen   []string // lines of stderr so far
}

// run starts a scenario; an endpoint is set, because the configuration demands one.
func run(t *testing.T, scenario string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // Only for a child that hangs.
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), childVar+"="+scenario, "GORACE=atexit_sleep_ms=0",
		"PERPKEEPER_SCANNER_RPC=https://bsc.example.org/hunter2", "PERPKEEPER_KAFKA_PASSWORD=hunter2")
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.stderr = bufio.NewScanner(stderr)
	return p
}

// until reads lines of the log up to one that holds the text.
func (p *process) until(text string) string {
	p.t.Helper()
	for p.stderr.Scan() {
		p.seen = append(p.seen, p.stderr.Text())
		if strings.Contains(p.stderr.Text(), text) {
			return p.stderr.Text()
		}
	}
	p.t.Fatalf("%q was never logged, but\n%s", text, strings.Join(p.seen, "\n"))
	return ""
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end, checks the exit code, and returns what has been written to stderr and not been read.
func (p *process) exits(code int) []string {
	p.t.Helper()
	read := len(p.seen)
	for p.stderr.Scan() {
		p.seen = append(p.seen, p.stderr.Text())
	}
	_ = p.cmd.Wait() // Its error is the exit code.
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("exit code %d, want %d\n%s", got, code, strings.Join(p.seen, "\n"))
	}
	if all := p.stdout.String() + strings.Join(p.seen, "\n"); strings.Contains(all, "hunter2") {
		p.t.Errorf("a secret is printed:\n%s", all)
	}
	return p.seen[read:]
}

func TestSignalsStopGracefully(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := run(t, "example")
		p.until(`"condition":"head"`) // The loop is running.
		p.signal(sig)
		p.until(`"message":"stopped"`)
		if rest := p.exits(service.ExitAsked); len(rest) > 0 {
			t.Errorf("%v: after the stop there is still %q", sig, rest)
		}
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	p := run(t, "stubborn")
	p.until(`"condition":"process"`)
	p.signal(syscall.SIGTERM)
	p.until(`"message":"stopping"`) // It now waits for a member that never ends.
	// The first signal's handler ends a moment after that line.
	go func() {
		for p.cmd.Process.Signal(syscall.SIGTERM) == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}()
	const bySignal = -1
	p.exits(bySignal)
}

func TestStartLineHoldsTheConfigurationMasked(t *testing.T) {
	p := run(t, "example", "--scanner.poll=1ms")
	var line struct {
		Message, Service string
		Config           map[string]string
	}
	if err := json.Unmarshal([]byte(p.until(`"message":"starting"`)), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"kafka.password": secret.Mask, "kafka.brokers": "127.0.0.1:9092", "scanner.rpc": "https://bsc.example.org/***",
		"scanner.poll": "1ms", "log.level": "info",
	} {
		if got := line.Config[key]; got != want {
			t.Errorf("%s is logged as %q, want %q", key, got, want)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(service.ExitAsked)
}

func TestFailureIsOneLineForPeople(t *testing.T) {
	for scenario, want := range map[string]string{
		"fails to start": "scanner: connecting to kafka at 127.0.0.1:9092: connection refused (is the broker " +
			"running? set kafka.brokers); " +
			"first: cannot be closed",
		"fails in two lines": "scanner: one; two",
	} {
		p := run(t, scenario, "--log.format=console", "--log.level=error")
		if got := p.exits(service.ExitFailed); len(got) != 1 || got[0] != want {
			t.Errorf("%s prints %q, want only %q", scenario, got, want)
		}
	}
}

func TestFailureIsOneLineOfJSON(t *testing.T) {
	p := run(t, "fails to start", "--log.format=json", "--log.level=error")
	got := p.exits(service.ExitFailed)
	var line struct{ Level, Service, Error, Message string }
	if len(got) != 1 || json.Unmarshal([]byte(got[0]), &line) != nil {
		t.Fatalf("got %q", got)
	}
	if line.Level != "fatal" || line.Service != "scanner" ||
		!strings.HasPrefix(line.Error, "connecting to kafka at 127.0.0.1:9092: connection refused") {
		t.Errorf("got %+v", line)
	}
}

func TestPanicFailsWithItsPlaceAndStack(t *testing.T) {
	for scenario, want := range map[string][2]string{
		"panics":          {"loop: panic: boom (in service_test.init", "main_test.go"},
		"panics in start": {"panic: assignment to entry in nil map (in service_test.init", "main_test.go"},
	} {
		p := run(t, scenario, "--log.format=json", "--log.level=error")
		got := p.exits(service.ExitFailed)
		var line struct{ Error, Stack string }
		if len(got) != 1 || json.Unmarshal([]byte(got[0]), &line) != nil {
			t.Fatalf("%s: got %q", scenario, got)
		}
		if !strings.HasPrefix(line.Error, want[0]) || !strings.Contains(line.Error, want[1]) ||
			!strings.Contains(line.Stack, "goroutine") {
			t.Errorf("%s: got %q with the stack\n%s", scenario, line.Error, line.Stack)
		}
	}
}

func TestBadConfigurationPrintsEveryProblemAndStartsNothing(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--scanner.poll=soon", "--log.level=loud", "--log.format=json", "--http.listen=8080",
			"--kafka.brokers="}, []string{
			`scanner: --scanner.poll: "soon" is not a duration (write it with a unit: 500ms, 10s, 2m)`,
			`scanner: kafka.brokers: empty (name at least one, such as 127.0.0.1:9092) [--kafka.brokers]`,
			`scanner: log.level: "loud" is not known (use one of trace, debug, info, warn, error) [--log.level]`,
			`scanner: http.listen: "8080" is not an address (write host:port, such as 0.0.0.0:8080) [--http.listen]`,
		}},
		{[]string{"start"},
			[]string{"scanner: unexpected argument (settings are written --section.key=value; --help lists them)"}},
		{[]string{"--config=absent.toml"},
			[]string{"scanner: absent.toml: no such file or directory (check --config and PERPKEEPER_CONFIG)"}},
	} {
		if got := run(t, "example", c.args...).
			exits(service.ExitConfig); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q prints\n%s\nwant\n%s", c.args, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	got := run(t, "misdeclared").exits(service.ExitConfig)
	if len(got) != 1 || !strings.Contains(got[0], `misdeclared.Poll: toml tag "" is not a key`) {
		t.Errorf("a structure that cannot be configured prints %q", got)
	}
}

func TestPortInUseIsOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	p := run(t, "example", "--http.listen="+address, "--log.format=console", "--log.level=error")
	want := "scanner: listening on " + address + ": address already in use (stop the process that has it, or set " +
		"http.listen)"
	if got := p.exits(service.ExitFailed); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want only %q", got, want)
	}
}

func TestPrintingRequests(t *testing.T) {
	for flag, want := range map[string]string{
		"--help": "scanner copies the chain's logs to Kafka.\n\nUsage: scanner [flags]\n",
		"--print-config": "[kafka]\nbrokers = [\"127.0.0.1:9092\"]\npassword = \"***\"\n\n[scanner]\nrpc = " +
			"[\"https://bsc.example.org/***\"]\n",
		"--version": "scanner devel",
		"--print-metrics": "| `perpkeeper_build_info` | gauge | go, revision, service, version | Always 1; the " +
			"labels say which program is running. |\n" +
			"| `perpkeeper_ready` | gauge | condition | 1 while a condition of readiness holds; /readyz says " +
			"why not. |\n" +
			"| `perpkeeper_scanner_heads_total` | counter |  | New heads seen. |\n",
	} {
		p := run(t, "example", flag)
		if rest := p.exits(service.ExitAsked); len(rest) > 0 || !strings.HasPrefix(p.stdout.String(), want) {
			t.Errorf("%s prints %q and, to stderr, %q", flag, p.stdout.String(), rest)
		}
	}
}

func TestToolEndsWhenItsWorkIsDone(t *testing.T) {
	p := run(t, "tool", "delayed", "run", "--kafka.brokers=b:1")
	if rest := p.exits(service.ExitAsked); len(rest) > 0 || p.stdout.String() != "delayed run b:1 true\nclosed\n" {
		t.Errorf("printed %q and, to stderr, %q", p.stdout.String(), rest)
	}
	p = run(t, "tool", "fail") // not on a terminal, and for people all the same
	want := "keeperctl: no such job (list them with: keeperctl delayed list)"
	if rest := p.exits(service.ExitFailed); len(rest) != 1 || rest[0] != want {
		t.Errorf("a failing tool prints %q", rest)
	}
	p = run(t, "tool", "guess")
	if rest := p.exits(service.ExitConfig); len(rest) != 1 || rest[0] != "keeperctl: delayed: guess what? name a job" {
		t.Errorf("a tool that is asked for nonsense prints %q", rest)
	}
	p = run(t, "tool", "give-up")
	if rest := p.exits(service.ExitFailed); len(rest) != 1 || rest[0] != "keeperctl: waiting: context canceled" {
		t.Errorf("a tool that gives up prints %q", rest)
	}
	p = run(t, "tool", "--help")
	if p.exits(service.ExitAsked); !strings.HasPrefix(p.stdout.String(), "Usage: keeperctl [flags] <command>\n") ||
		strings.Contains(p.stdout.String(), "http.") {
		t.Errorf("help is %q", p.stdout.String())
	}
}

// The pages of a real process can be asked for at the address it logs.
func TestLoggedAddressIsServed(t *testing.T) {
	p := run(t, "example")
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(p.until("serving http")), &line); err != nil {
		t.Fatal(err)
	}
	p.until(`"condition":"head"`)
	for path, want := range map[string]string{"/livez": "ok\n", "/readyz": "ok\n", "/status": "scanning\n"} {
		if status, body := get(t, line.Address, path); status != http.StatusOK || body != want {
			t.Errorf("%s answers %d %q", path, status, body)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(service.ExitAsked)
}
