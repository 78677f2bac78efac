package postgres

import (
	"bufio"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStartStop(t *testing.T) {
	s, err := Start(Config{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL("keeper_a"))
	if err != nil || u.Path != "/keeper_a" || u.Hostname() != "127.0.0.1" {
		t.Errorf("URL: %q, %v", s.URL("keeper_a"), err)
	}
	if password, _ := u.User.Password(); len(password) < 16 {
		t.Errorf("the password is too short: %q", password)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	_ = conn.Close()

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if _, err := os.Stat(s.home.dir); !os.IsNotExist(err) {
		t.Errorf("the throw-away directory is still there: %v", err)
	}
	if _, err := net.Dial("tcp", u.Host); err == nil {
		t.Error("the server still listens")
	}
}

func TestDataSurvivesARestart(t *testing.T) {
	dir := reachable(t)
	first, err := Start(Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Start(Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		if err == nil {
			_ = second.Stop()
		}
		t.Errorf("a second server in the same directory: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	again, err := Start(Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if again.password != first.password {
		t.Error("the password changed over a restart")
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION")); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
}

// A killed parent leaves neither a server nor, after the next Start, a directory.
func TestDiesWithItsParent(t *testing.T) {
	if os.Getenv("POSTGRES_TEST_PARENT") != "" {
		parent()
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithItsParent$")
	cmd.Env = append(os.Environ(), "POSTGRES_TEST_PARENT=1", "TMPDIR="+reachable(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir, host, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	hang := time.After(time.Minute)
	for {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			break
		}
		_ = conn.Close()
		select {
		case <-tick.C:
		case <-hang:
			t.Fatal("the server outlived its parent")
		}
	}
	sweep(filepath.Dir(dir), time.Hour)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a young directory was swept away: %v", err)
	}
	sweep(filepath.Dir(dir), 0)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory of a dead owner is still there: %v", err)
	}
}

// parent starts a server, says where, and waits to be killed.
func parent() {
	s, err := Start(Config{NoSync: true})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	u, _ := url.Parse(s.URL(""))
	os.Stdout.WriteString(s.home.dir + " " + u.Host + "\n")
	<-s.Done()
	os.Exit(0)
}

// reachable is a temporary directory that the server's account can get to as well; t.TempDir hides it behind a private
// parent.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded-postgres-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
