package pg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/lease/leasetest"
	"perpkeeper/pkg/txmgr/txm/txmtest"
)

// granted is a fresh database with all roles, by the address of its owner.
func granted(t *testing.T) (address string) {
	t.Helper()
	address = pgtest.URL(t)
	db := open(t, address)
	if err := pgtest.Grant(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return address
}

// Everything the sender does to leases and intents, it can do as its role.
func TestSenderRoleDoesItsJob(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) (lease.Store, chain.Address) {
		db, signer := pgtest.OpenAs(t, pg.RoleSender, granted(t)), chain.Address{0xaa}
		if err := txstore.NewLeases(db).Register(t.Context(), signer, txstoretest.ChainID); err != nil {
			t.Fatal(err)
		}
		return txstore.NewLeases(db), signer
	})
	txmtest.Run(t, func(t *testing.T) txmtest.Stores {
		db := pgtest.OpenAs(t, pg.RoleSender, granted(t))
		return txmtest.Stores{Leases: txstore.NewLeases(db), Nonces: txstore.NewLeases(db),
			Intents: txstore.NewIntents(db), Register: txstoretest.Registrar(db)}
	})
}

// What a role may do, and that it may do nothing else: each statement is tried as each role.
func TestRolesMayDoTheirWorkAlone(t *testing.T) {
	address := granted(t)
	const denied = "42501" // insufficient_privilege
	for statement, allowed := range map[string]string{
		`UPDATE state_g1.position SET rev = 0 WHERE false`:                        "statevm ops",
		`DELETE FROM state_g1.undo WHERE false`:                                   "statevm ops",
		`SELECT FROM state_g1.position`:                                           "statevm planner sender ops",
		`UPDATE keeper.generation SET partitions = 1 WHERE false`:                 "statevm ops",
		`UPDATE keeper.active_generation SET generation = 1 WHERE false`:          "ops",
		`UPDATE keeper.signer_lease SET next_nonce = 0 WHERE false`:               "sender ops",
		`UPDATE keeper.signer_nonce_allocation SET state = state WHERE false`:     "sender ops",
		`UPDATE keeper.tx_intent SET state = state WHERE false`:                   "sender ops",
		`SELECT FROM keeper.signed_tx`:                                            "sender ops",
		`SELECT FROM keeper.every_signed_tx`:                                      "sender ops",
		`SELECT FROM keeper.archived_signed_tx`:                                   "sender ops",
		`UPDATE keeper.delayed_job SET version = 0 WHERE false`:                   "planner ops",
		`INSERT INTO keeper.wallet SELECT * FROM keeper.wallet WHERE false`:       "planner ops",
		`SELECT FROM public.perpkeeper_schema`:                                    "statevm planner sender ops",
		`DELETE FROM public.perpkeeper_schema WHERE false`:                        "",
		`CREATE TABLE keeper.mine ()`:                                             "",
		`CREATE TABLE public.mine ()`:                                             "",
		`CREATE SCHEMA mine`:                                                      "ops",
		`DROP TABLE state_g1.bad_debt`:                                            "ops",
		`TRUNCATE keeper.commission`:                                              "",
		`SELECT pg_read_file('postgresql.conf')`:                                  "",
		`ALTER ROLE keeper_sender SUPERUSER`:                                      "",
		`SELECT system_identifier, pg_current_wal_lsn() FROM pg_control_system()`: "statevm planner sender ops",
	} {
		for _, role := range []string{pg.RoleStatevm, pg.RolePlanner, pg.RoleSender, pg.RoleOps} {
			conn, err := pgx.Connect(t.Context(), pgtest.URLAs(t, role, address))
			if err != nil {
				t.Fatal(err)
			}
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), statement)
			may := strings.Contains(" "+allowed+" ", " "+strings.TrimPrefix(role, "keeper_")+" ")
			switch {
			case may && err != nil:
				t.Errorf("%s: %s: %v", role, statement, err)
			case !may && (err == nil || !strings.Contains(err.Error(), denied)):
				t.Errorf("%s may: %s (%v)", role, statement, err)
			}
			_ = tx.Rollback(t.Context())
			_ = conn.Close(t.Context())
		}
	}
}

// A generation that an operator makes later is statevm's to write, and the others' to read; the operator can drop it,
// the first one too once it does not serve.
func TestRolesShareLaterGenerations(t *testing.T) {
	address := granted(t)
	ops, statevm, planner := pgtest.OpenAs(t, pg.RoleOps, address), pgtest.OpenAs(t, pg.RoleStatevm, address),
		pgtest.OpenAs(t, pg.RolePlanner, address)
	number, err := ops.AddGeneration(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, generation := range []int{1, number} {
		if _, err := statevm.Claim(t.Context(), pg.ClaimRequest{Generation: generation, Partition: 0, Partitions: 1,
			Label: "test"}); err != nil {
			t.Errorf("generation %d: %v", generation, err)
		}
	}
	if err := statevm.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	if err := ops.Switch(t.Context(), number, "a test"); err != nil {
		t.Fatal(err)
	}
	if _, err := planner.Progress(t.Context()); err != nil {
		t.Errorf("the planner reads generation %d: %v", number, err)
	}
	if err := ops.DropGeneration(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// Granting again, as every start of a region does, waits for no table of the state that a process is just writing, and
// makes none wait.
func TestGrantAgainLocksNoState(t *testing.T) {
	address := granted(t)
	db := open(t, address)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		"LOCK TABLE state_g1.kept_block, state_g1.position IN ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := pgtest.Grant(ctx, db); err != nil {
		t.Errorf("while the state is written: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// Granting again changes passwords and nothing else; without all passwords nothing is done.
func TestGrantAgain(t *testing.T) {
	db := open(t, granted(t))
	if err := pgtest.Grant(t.Context(), db); err != nil {
		t.Error(err)
	}
	p := pgtest.Passwords()
	p.Sender = secret.String{}
	if err := db.Grant(t.Context(), p); err == nil || !strings.Contains(err.Error(), "sender: is empty") {
		t.Errorf("without the sender's password: %v", err)
	}
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.Password = secret.MustURL("postgres://keeper:one@db/keeper?sslmode=disable"), secret.New("two")
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "password: the url holds one already") ||
		strings.Contains(err.Error(), "two") {
		t.Errorf("two passwords: %v", err)
	}
}
