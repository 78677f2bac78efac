package snapshot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// keeper is a database with a block in each of two partitions, and a folder for its snapshots.
type keeper struct {
	*testing.T

	db     *pg.DB
	cfg    pg.Config
	folder Folder
}

func newKeeper(t *testing.T) keeper {
	t.Helper()
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("PostgreSQL's client programs are not on this machine")
		}
	}
	k := keeper{t, nil, pgtest.Config(t), In(t.TempDir())}
	var err error
	if k.db, err = pg.Open(t.Context(), k.cfg, t.Name()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.db.Close)
	block := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}}
	for part := range 2 {
		p, err := k.db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partition: part, Partitions: 2})
		if err == nil {
			err = p.Commit(t.Context(), pg.Commit{Next: 10 + int64(part), Finalized: block,
				Blocks: []pg.AppliedBlock{{BlockRef: block}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k keeper) create() (string, Manifest, error) {
	return k.folder.Create(k.Context(), k.db, k.cfg, 56)
}

func (k keeper) mustCreate() (string, Manifest) {
	k.Helper()
	name, m, err := k.create()
	if err != nil {
		k.Fatal(err)
	}
	return name, m
}

// generations are how many there are.
func (k keeper) generations() int {
	k.Helper()
	all, err := k.db.Generations(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	return len(all)
}

// fake puts a shell script in the place of a program.
func fake(t *testing.T, name, script string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// PIPE-8: a generation made of a snapshot holds what the one holds that it was taken of, with its offsets.
func TestSnapshotIsTheGeneration(t *testing.T) {
	k := newKeeper(t)
	name, m := k.mustCreate()
	if m.Block != 7 || len(m.Next) != 2 || m.Next[1] != 11 || m.Layout != pg.StateLayout || m.Total() == 0 {
		t.Errorf("the manifest is %+v", m)
	}
	if _, err := k.folder.Verify(t.Context(), name); err != nil {
		t.Error(err)
	}
	if err := errors.Join(m.Fits(56, 2), m.Fits(97, 2), m.Fits(56, 3)); strings.Count(err.Error(), "\n") != 1 {
		t.Error(err)
	}
	if newest, err := k.folder.Newest(); err != nil || newest != name {
		t.Errorf("the newest is %s, %v", newest, err)
	}
	number, err := k.folder.Restore(t.Context(), k.db, name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.db.Compare(t.Context(), 1, number)
	if err != nil || !c.Equal() {
		t.Errorf("generation %d differs in %v, at the same place: %t, %v", number, c.Differing(), c.SamePlace(), err)
	}
}

// What was torn or altered is refused in one line, and nothing of it is in the database; a snapshot without a manifest
// is none.
func TestTornIsRefused(t *testing.T) {
	k := newKeeper(t)
	name, _ := k.mustCreate()
	files, err := filepath.Glob(filepath.Join(k.folder.path, name, "*.*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("it has the files %v, %v", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == manifestFile {
			continue
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		altered := bytes.Clone(whole)
		altered[len(altered)-6] ^= 1
		for what, torn := range map[string][]byte{"torn": whole[:len(whole)-1], "empty": nil, "altered": altered} {
			if what == "altered" && filepath.Ext(file) != ".gz" {
				continue
			}
			if err := os.WriteFile(file, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := k.folder.Verify(t.Context(), name); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s is %s: verified: %v", file, what, err)
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(files[0], 20); err != nil {
		t.Fatal(err)
	}
	if _, err := k.folder.Restore(t.Context(), k.db, name); err == nil || k.generations() != 1 {
		t.Errorf("restored: %v", err)
	}
	if err := os.Remove(filepath.Join(k.folder.path, name, manifestFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.folder.Newest(); err == nil || !strings.Contains(err.Error(), "there are no snapshots") {
		t.Errorf("without a manifest: %v", err)
	}
}

// A disk that takes no more bytes ends the snapshot, which is an error, and keeps no old row in the database.
func TestMuteDiskEndsASnapshot(t *testing.T) {
	k := newKeeper(t)
	k.folder.mute = 300 * time.Millisecond
	fake(t, "pg_dump", `for a; do case $a in --file=*) echo some >"${a#--file=}/toc.dat";; esac; done; exec sleep 1000`)
	_, _, err := k.create()
	if !errors.Is(err, errMute) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if names, err := k.folder.List(); err != nil || len(names) != 0 {
		t.Errorf("there are %v, %v", names, err)
	}
	k.folder = Folder{t.TempDir(), mute, 300 * time.Millisecond}
	if _, _, err := k.create(); err == nil || !strings.Contains(err.Error(), "gave up after 300ms") {
		t.Errorf("without an end: %v", err)
	}
	var held int
	err = k.db.Pool().QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()`).Scan(&held)
	if err != nil || held != 0 {
		t.Errorf("%d connections keep old rows, %v", held, err)
	}
}

// A folder that grows is heard of each time.
func TestGrowthIsSeen(t *testing.T) {
	path := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	grown := make(chan struct{})
	go watch(ctx, path, time.Millisecond, grown)
	for n := range 3 {
		if err := os.WriteFile(filepath.Join(path, "toc.dat"), make([]byte, 1+n), 0o600); err != nil {
			t.Fatal(err)
		}
		<-grown
	}
}

// A disk that gives no more bytes ends a restore, and nothing is in the database.
func TestMuteDiskEndsARestore(t *testing.T) {
	k := newKeeper(t)
	name, _ := k.mustCreate()
	k.folder.mute = 300 * time.Millisecond
	fake(t, "pg_restore", `echo 'COPY state_g1.undo (part, block, tbl, key, prior) FROM stdin;'; exec sleep 1000`)
	if _, err := k.folder.Verify(t.Context(), name); !errors.Is(err, errMute) {
		t.Errorf("verified: %v", err)
	}
	if _, err := k.folder.Restore(t.Context(), k.db, name); err == nil || k.generations() != 1 {
		t.Errorf("restored: %v", err)
	}
}

// A failure says in one line what the program said, a missing program what to install; neither shows the password.
func TestProgramsThatFail(t *testing.T) {
	k := newKeeper(t)
	address, password, err := k.cfg.Client()
	if err != nil || !password.IsSet() || strings.Contains(address, password.Reveal()) {
		t.Errorf("the address is %s, %v", address, err)
	}
	// PostgreSQL 17 opens its standard output, whatever it writes to.
	fake(t, "pg_dump", `echo || exit 2
		case "$*" in *"$PGPASSWORD"*) echo it is shown;; *) echo no space is left;; esac >&2; exit 1`)
	refused := func(because string) {
		t.Helper()
		_, _, err := k.create()
		if err == nil || !strings.Contains(err.Error(), because) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, because)
		}
		if left, err := os.ReadDir(k.folder.path); err != nil || len(left) != 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
	refused("pg_dump: exit status 1: no space is left")
	t.Setenv("PATH", t.TempDir())
	refused("pg_dump is not on this machine")
}

// A name of the future is no snapshot, whoever has left it; nor is one that people mistype.
func TestNames(t *testing.T) {
	f := In(t.TempDir())
	ahead := time.Now().UTC().AddDate(1, 0, 0).Format(timeLayout) + "-56-1"
	for _, name := range []string{"20200101T000000Z-56-1", "20200102T000000Z-56-9", ahead, "notes"} {
		if err := errors.Join(os.Mkdir(filepath.Join(f.path, name), 0o700),
			os.WriteFile(filepath.Join(f.path, name, manifestFile), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := f.List(); err != nil || len(names) != 2 {
		t.Errorf("there are %v, %v", names, err)
	}
	if newest, err := f.Newest(); err != nil || newest != "20200102T000000Z-56-9" {
		t.Errorf("the newest is %s, %v", newest, err)
	}
	for name, because := range map[string]string{"": "no name of a snapshot", "../20200101T000000Z-56-1": "no name of",
		"20200103T000000Z-56-1": "there is no snapshot"} {
		if _, err := f.Read(name); err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := In(filepath.Join(f.path, "none")).List(); err == nil {
		t.Error("a folder that is not there has no snapshots")
	}
}
