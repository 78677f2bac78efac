package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/demo"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/programs"
)

// outage is how long a part stays away: KEEPER_OUTAGE, or 15 s.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("KEEPER_OUTAGE")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// outageRate is how many actions a second traders take beside an outage: what piles up meanwhile must be executed
// before it expires, also on a machine that has other things to do.
const outageRate = 1

// lasts waits, and fails if a process gives up meanwhile.
func (k *keeper) lasts(how time.Duration) {
	k.t.Helper()
	select {
	case err := <-k.Failed():
		k.t.Fatal(err)
	case <-time.After(how):
	}
}

// Kafka is away and comes back: every service waits, nothing is lost or doubled.
func TestKafkaDown(t *testing.T) {
	long(t)
	var down, up func()
	var brokers []string
	if os.Getenv("KAFKA_BROKERS") == "" {
		addresses := []string{programs.FreeAddress(t)}
		folder := t.TempDir()
		var b *broker.Broker
		up = func() {
			var err error
			if b, err = broker.Start(broker.Config{DataDir: folder, Listen: addresses}); err != nil {
				t.Fatal(err)
			}
		}
		down = func() { b.Close() }
		up()
		t.Cleanup(func() { b.Close() })
		brokers = addresses
	} else {
		script := func(command string) func() {
			return func() {
				if out, err := exec.CommandContext(t.Context(), filepath.Join("..", "kafka", "kafka.sh"), command).
					CombinedOutput(); err != nil {
					t.Fatalf("kafka.sh %s: %v\n%s", command, err, out)
				}
			}
		}
		down, up, brokers = script("kill"), script("start"), strings.Split(os.Getenv("KAFKA_BROKERS"), ",")
	}
	k := start(t, func(s *demo.Settings) { s.Brokers, s.Rate = brokers, outageRate })
	k.progress(3, 0)
	down()
	k.lasts(outage(t))
	up()
	k.awaitReady()
	k.progress(3, 0)
	k.finish()
}

// Postgres is away and comes back: every service waits, nothing is lost or doubled.
func TestPostgresDown(t *testing.T) {
	long(t)
	cfg := postgres.Config{DataDir: filepath.Join(openFolder(t), "data"), Port: freePort(t)}
	up := func() *postgres.Server {
		server, err := postgres.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server := up()
	t.Cleanup(func() { _ = server.Stop() })
	k := start(t, func(s *demo.Settings) { s.Postgres, s.Rate = secret.MustURL(server.URL("")), outageRate })
	k.progress(3, 0)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	k.lasts(outage(t))
	server = up()
	k.awaitReady()
	k.progress(3, 0)
	k.finish()
}

// PIPE-14: a standby is promoted behind the one address, and the old primary stays up and only reads. Every process is
// at the new one within 15 seconds, without a restart, and nothing is lost or doubled.
func TestPostgresPromoted(t *testing.T) {
	long(t)
	pair := pgtest.NewPair(t)
	k := start(t, func(s *demo.Settings) { s.Postgres, s.Rate = secret.MustURL(pair.URL()), outageRate })
	k.progress(3, 0)
	pair.Promote()
	began := time.Now()
	k.progress(1, 0)
	k.awaitReady()
	if took := time.Since(began); took > 15*time.Second {
		k.errorf("executed again after %s", took)
	} else {
		t.Logf("executed again after %s", took)
	}
	k.progress(3, 0)
	for _, p := range k.Processes {
		if n := p.Restarts(); n > 0 {
			k.errorf("%s was started again %d times", p.Name, n)
		}
	}
	k.finish()
}

// openFolder is a temporary folder that another account may enter: the server is never run as root.
func openFolder(t *testing.T) string {
	t.Helper()
	//nolint:usetesting // t.TempDir lies below a folder that only its owner may enter
	folder, err := os.MkdirTemp("", "perpkeeper-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func freePort(t *testing.T) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", programs.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return address.Port
}
