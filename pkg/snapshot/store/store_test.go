package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/snapshot/store/storetest"
)

func TestFolder(t *testing.T) {
	s, err := Open(Config{Location: filepath.Join(t.TempDir(), "not", "there", "yet")})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, s, 1<<20)
}

// serverVariable names a server that speaks the S3 API, as s3+http://HOST:PORT/BUCKET; its keys stand in two more.
// `make test-s3` starts one.
const serverVariable = "PERPKEEPER_TEST_S3"

func TestBucket(t *testing.T) {
	location := os.Getenv(serverVariable)
	if location == "" {
		t.Skipf("%s names no server that speaks the S3 API (make test-s3 starts one)", serverVariable)
	}
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	c := Config{Location: location + "/" + hex.EncodeToString(random),
		AccessKey: secret.New(os.Getenv(serverVariable + "_ACCESS_KEY")),
		SecretKey: secret.New(os.Getenv(serverVariable + "_SECRET_KEY"))}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := c.parse()
	made, err := openBucket(at, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.client.MakeBucket(t.Context(), at.bucket, minio.MakeBucketOptions{}); err != nil &&
		minio.ToErrorResponse(err).Code != "BucketAlreadyOwnedByYou" {
		t.Fatal(err)
	}
	storetest.Run(t, s, 2*partBytes+1)

	c.SecretKey = secret.New("another")
	stranger, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.List(t.Context()); err == nil || strings.Contains(err.Error(), "another") {
		t.Errorf("a wrong key: %v", err)
	}
	if err := stranger.Put(t.Context(), "x/1", strings.NewReader("x")); err == nil {
		t.Error("a wrong key may write")
	}
}

// A process that ends between writing and renaming leaves nothing under the name.
func TestFolderNamesWhatIsWhole(t *testing.T) {
	path := t.TempDir()
	s := folder(path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "a/1", strings.NewReader("x")); err == nil {
		t.Error("an ended context wrote")
	}
	if err := os.WriteFile(filepath.Join(path, "a", "2"+unfinished), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), "a/2"); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestConfig(t *testing.T) {
	for location, wrong := range map[string]string{
		"snapshots": "absolute path", "ftp://host/bucket": "not s3://", "s3://host": "no bucket",
		"s3://key:word@host/bucket": "access_key", "/var/snapshots": "", "s3://host:9000/bucket/a/b": "",
		"s3+http://127.0.0.1:7070/b": "", "": "",
	} {
		c := DefaultConfig()
		c.Location = location
		err := c.Validate()
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: got %v", location, err)
		}
		if err != nil && strings.Contains(err.Error(), "word") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
	if err := (Config{Every: time.Second, Keep: 0, AccessKey: secret.New("x")}).Validate(); err == nil ||
		strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Config{}); err == nil {
		t.Error("no location was opened")
	}
}

// A log topic may drop its beginning only where two snapshots fall into what it keeps.
func TestRetentionNeedsSnapshots(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		location  string
		every     time.Duration
		retention time.Duration
		fine      bool
	}{
		{"", 0, 0, true}, {"", 0, 30 * day, false}, {"/x", 0, 30 * day, false}, {"/x", day, 30 * day, true},
		{"/x", 16 * day, 30 * day, false}, {"/x", 15 * day, 30 * day, true},
	} {
		err := Config{Location: test.location, Every: test.every}.Allows(test.retention)
		if (err == nil) != test.fine {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}
