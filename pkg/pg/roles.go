package pg

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/setting/secret"
)

// The roles of a keeper's database: one a process, each with what its process needs and nothing else. scanner has none.
// They belong to the server, so that two keepers whose databases share a server share the roles, and their passwords.
const (
	RoleStatevm = "keeper_statevm" // writes the derived state
	RolePlanner = "keeper_planner" // reads state and jobs, writes delayed jobs and wallets
	RoleSender  = "keeper_sender"  // reads everything, writes signers, leases, nonces, intents
	RoleOps     = "keeper_ops"     // owns the generations of the state, and works on the keeper's own tables
)

// Passwords are those of the roles.
type Passwords struct {
	Statevm secret.String `toml:"statevm" help:"password of the role that statevm connects as"`
	Planner secret.String `toml:"planner" help:"password of the role that planner connects as"`
	Sender  secret.String `toml:"sender" help:"password of the role that sender connects as"`
	Ops     secret.String `toml:"ops" help:"password of the role that operators' commands connect as"`
}

// IsSet reports whether there are to be roles at all.
func (p Passwords) IsSet() bool { return p != Passwords{} }

// Validate demands all passwords or none.
func (p Passwords) Validate() error {
	if !p.IsSet() {
		return nil
	}
	for _, r := range p.roles() {
		if !r.password.IsSet() {
			return fmt.Errorf("%s: is empty (every role needs a password; see deploy/compose/new-secrets.sh)",
				strings.TrimPrefix(r.name, "keeper_"))
		}
	}
	return nil
}

// role is one of the roles and what it may do: per privileges, the tables of schema keeper ("*" = all).
type role struct {
	name     string
	password secret.String
	reads    []string
	writes   []string
	runs     []string // functions of schema keeper that do what their owner may
}

func (p Passwords) roles() []role {
	all := []string{"*"}
	return []role{
		{RoleStatevm, p.Statevm, []string{"generation", "active_generation", "generation_switch", "oldest_build"},
			[]string{"generation"}, nil},
		// no signed bytes: they may be private
		{RolePlanner, p.Planner, []string{"generation", "active_generation", "generation_switch", "oldest_build",
			"signer", "signer_lease", "tx_intent", "tx_receipt", "every_intent", "every_receipt"},
			[]string{"delayed_job", "delayed_scan", "wallet", "wallet_entry", "commission"}, nil},
		{RoleSender, p.Sender, all, []string{
			"signer", "signer_lease", "signer_event", "signer_nonce_allocation", "tx_intent", "signed_tx",
			"tx_receipt", "notified", "shadow_trial", "archived_intent", "archived_signed_tx", "archived_receipt",
			"archived_allocation", "archive_week", "archive_mark", "archived_nonce",
			"archived_job", "pnl_day", "preflight_check",
		}, archiveFunctions},
		{RoleOps, p.Ops, all, all, archiveFunctions},
	}
}

var (
	selectRoles   = Register("known roles", `SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)`)
	selectSchemas = Register("schemas of generations",
		`SELECT nspname FROM pg_namespace WHERE nspname ~ '^state_g[0-9]+$' ORDER BY nspname`)
	selectOthers = Register("tables of a schema that others own",
		`SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'S') AND pg_get_userbyid(c.relowner) <> $2 ORDER BY c.relname`)
	selectSuperuser = Register("superuser", `SELECT rolsuper FROM pg_roles WHERE rolname = current_user`)
)

// Grant creates the roles that are missing, sets their passwords, and gives each exactly what it needs, in all
// generations there are; those to come are shared when they are made. It is for who owns the database. Doing it again
// changes nothing but the passwords.
func (db *DB) Grant(ctx context.Context, p Passwords) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return db.withGenerations(ctx, func(tx pgx.Tx) error {
		for _, r := range p.roles() {
			if err := createRole(ctx, tx, r); err != nil {
				return fmt.Errorf("creating the role %s: %w", r.name, err)
			}
			if _, err := tx.Exec(ctx, r.grants()); err != nil {
				return fmt.Errorf("granting to the role %s: %w", r.name, err)
			}
		}
		if err := letOpsOwn(ctx, tx); err != nil {
			return fmt.Errorf("giving the generations to the role %s: %w", RoleOps, err)
		}
		return nil
	})
}

func createRole(ctx context.Context, tx pgx.Tx, r role) error {
	known, err := names(ctx, tx, selectRoles, []string{r.name})
	if err != nil {
		return err
	}
	verb := "CREATE"
	if len(known) > 0 {
		verb = "ALTER"
	}
	// The server is given what it would store, and not the password: statements may be logged.
	_, err = tx.Exec(ctx, verb+" ROLE "+r.name+" LOGIN PASSWORD '"+verifier(r.password.Reveal())+"'")
	return err
}

// grants takes all from a role and gives it what it needs in schema keeper.
func (r role) grants() string {
	var b strings.Builder
	fmt.Fprintf(&b, "REVOKE ALL ON ALL TABLES IN SCHEMA keeper FROM %[1]s; GRANT USAGE ON SCHEMA keeper, public TO "+
		"%[1]s;\n", r.name)
	fmt.Fprintf(&b, "GRANT SELECT ON %s TO %s;\n", versionTable, r.name)
	for _, g := range []struct {
		privileges string
		tables     []string
	}{{"SELECT", r.reads}, {"SELECT, INSERT, UPDATE, DELETE", r.writes}} {
		for _, t := range g.tables {
			on := "keeper." + t
			if t == "*" {
				on = "ALL TABLES IN SCHEMA keeper"
			}
			fmt.Fprintf(&b, "GRANT %s ON %s TO %s;\n", g.privileges, on, r.name)
		}
	}
	for _, f := range r.runs {
		fmt.Fprintf(&b, "GRANT EXECUTE ON FUNCTION keeper.%s TO %s;\n", f, r.name)
	}
	return b.String()
}

// archiveFunctions make and drop the partitions of the archive, which belong to who owns the database.
var archiveFunctions = []string{"open_archive_week(date)", "drop_archive_week(date)"}

// letOpsOwn hands the generations over: operators fill, switch and drop them, and only an owner can. What is handed
// over already is not touched again, as that would lock every table of the state while the processes read and write it.
func letOpsOwn(ctx context.Context, tx pgx.Tx) error {
	var superuser bool
	if err := tx.QueryRow(ctx, selectSuperuser.SQL()).Scan(&superuser); err != nil {
		return err
	}
	var database string
	if err := tx.QueryRow(ctx, selectDatabase.SQL()).Scan(&database); err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("GRANT CREATE ON DATABASE " + pgx.Identifier{database}.Sanitize() + " TO " + RoleOps + ";\n")
	if !superuser {
		script.WriteString("GRANT " + RoleOps + " TO CURRENT_USER;\n") // who may not give away what is another's
	}
	schemas, err := names(ctx, tx, selectSchemas)
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		tables, err := names(ctx, tx, selectOthers, schema, RoleOps)
		if err != nil {
			return err
		}
		script.WriteString("ALTER SCHEMA " + schema + " OWNER TO " + RoleOps + ";\n")
		for _, t := range tables {
			script.WriteString("ALTER TABLE " + schema + "." + pgx.Identifier{t}.Sanitize() + " OWNER TO " + RoleOps +
				";\n")
		}
		script.WriteString(shareSchema(schema, RoleStatevm, RolePlanner, RoleSender))
	}
	_, err = tx.Exec(ctx, script.String())
	return err
}

var selectDatabase = Register("this database", `SELECT current_database()`)

// shareGeneration lets the roles that exist use a generation that has just been made.
func shareGeneration(ctx context.Context, tx pgx.Tx, number int) error {
	known, err := names(ctx, tx, selectRoles, []string{RoleStatevm, RolePlanner, RoleSender})
	if err == nil && len(known) > 0 {
		_, err = tx.Exec(ctx, shareSchema(schemaName(number), known...))
	}
	if err != nil {
		return fmt.Errorf("sharing generation %d: %w", number, err)
	}
	return nil
}

// shareSchema lets statevm write a generation and the others read it.
func shareSchema(schema string, roles ...string) string {
	var b strings.Builder
	for _, name := range roles {
		privileges := "SELECT"
		if name == RoleStatevm {
			privileges = "SELECT, INSERT, UPDATE, DELETE"
		}
		fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT %[3]s ON ALL TABLES IN SCHEMA %[1]s TO %[2]s;\n",
			schema, name, privileges)
	}
	return b.String()
}

// names collects a column of names.
func names(ctx context.Context, tx pgx.Tx, s *Statement, args ...any) ([]string, error) {
	return Select(ctx, tx, pgx.RowTo[string], s.SQL(), args...)
}

// verifier is what PostgreSQL stores of a password: SCRAM-SHA-256 of RFC 5802, as pg_authid has it. Passwords are
// ASCII, so that SASLprep changes nothing.
func verifier(password string) string {
	const rounds, saltBytes = 4096, 16
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		panic(err) // only for keys of impossible lengths
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, encode(salt), encode(stored[:]),
		encode(sign(salted, "Server Key")))
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
