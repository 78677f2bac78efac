package pg_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/setting/secret"
)

// Whoever stands between a process and its database, and asks for the password in clear, is not told it where there is
// no TLS.
func TestPasswordIsNotToldInClear(t *testing.T) {
	t.Parallel()
	impostor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Close()
	heard := make(chan string, 1)
	go func() {
		client, err := impostor.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		var length uint32
		if binary.Read(client, binary.BigEndian, &length) != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, client, int64(length)-4)     // what it wants to connect to
		_, _ = client.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3}) // AuthenticationCleartextPassword
		_ = impostor.Close()                                     // whoever tries again finds nobody
		said := make([]byte, 1<<10)
		n, _ := client.Read(said) // its answer, or that it leaves
		heard <- string(said[:n])
	}()
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL("postgres://keeper@" + impostor.Addr().String() + "/keeper?sslmode=disable")
	cfg.Password = secret.New("hunter2")
	db, err := pg.Open(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Progress(t.Context()); err == nil {
		t.Error("the impostor was believed")
	}
	if said := <-heard; strings.Contains(said, "hunter2") {
		t.Errorf("the impostor was told %q", said)
	}
}
