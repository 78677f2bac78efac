package keeperctl

import (
	"errors"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify/receivers"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/services/keeperctl/doctor"
)

// Config is the configuration of the commands: sections of the keeper's own configuration, and [keeperctl]. Each
// command names what it needs of it; the rest is neither asked for nor judged.
type Config struct {
	Own         Settings            `toml:"keeperctl"`
	Log         service.LogSettings `toml:"log"`
	Keeper      wire.Config         `toml:"keeper"`
	Chain       evm.Config          `toml:"chain"`
	Venue       gmx.Config          `toml:"venue"`
	Kafka       bus.Config          `toml:"kafka"`
	Postgres    pg.Config           `toml:"postgres"`
	Tier        tier.Config         `toml:"tier"`
	Liquidation liquidation.Config  `toml:"liquidation"`
	Notify      receivers.Config    `toml:"notify"`
	Emergency   emergency.Config    `toml:"emergency"`
	Signer      signer.Config       `toml:"signer"`
	Scanner     Scanner             `toml:"scanner"`
	Planner     Planner             `toml:"planner"`
	Sender      Sender              `toml:"sender"`
}

// borrowed are the sections of other processes, which judge them: here stands what doctor looks at.
var borrowed = []string{"scanner", "planner", "sender"}

// Scanner is what doctor reads of the scanner's section.
type Scanner struct {
	StartBlock uint64          `toml:"start_block" help:"the scanner's: first block of an empty topic"`
	Signers    []chain.Address `toml:"signers" help:"the scanner's: signers whose transactions are recorded"`
	Price      sources.Config  `toml:"price"`
}

// Planner is what doctor reads of the planner's section.
type Planner struct {
	Bindings []doctor.Binding `toml:"bindings" help:"the planner's: signers that take the jobs of some lanes only"`
	AdlRole  bool             `toml:"adl_role" help:"the planner's: the signers hold the deleveraging role"`

	CancelExpired bool `toml:"cancel_expired" help:"the planner's: what expired is cancelled"`
}

// shadowMode is the mode of a sender that sends nothing.
const shadowMode = "shadow"

// Sender is what doctor reads of the sender's section.
type Sender struct {
	Mode string `toml:"mode" help:"the sender's: shadow has no keys"`
}

// Settings is the [keeperctl] section.
type Settings struct {
	Limit    int           `toml:"limit" help:"most rows to list"`
	Patience time.Duration `toml:"patience" help:"how long to wait for the database, Kafka, the chain, or for something to go on"`
	Operator string        `toml:"operator" help:"who asks, for the record; empty = the account's and the machine's name"`

	Processes []status.Address `toml:"processes" help:"where the keeper's processes serve their pages, NAME=http://HOST:PORT each; status asks them"`

	Alertmanager secret.URL `toml:"alertmanager" help:"where Alertmanager listens, http(s); doctor asks whether it is ready; empty = there is none"`
	Disks        []string   `toml:"disks" help:"folders whose file systems doctor asks for their free space"`

	Yes    bool   `toml:"yes" help:"do what was only shown otherwise"`
	DryRun bool   `toml:"dry_run" help:"plan, rehearse and record, and do nothing"`
	Reason string `toml:"reason" help:"why to switch although the generations are not equal; it is recorded"`

	// EmergencySigner has the one key of emergency.account, where calls are sent by keeperctl itself.
	EmergencySigner signer.Config `toml:"emergency_signer"`

	Roles       pg.Passwords `toml:"roles"`
	Replication int          `toml:"replication" help:"copies of each partition of a topic that has to be created; 0 = the brokers' default"`
}

// defaultConfig asks a node, a broker and a database on this machine, and changes nothing that has to be confirmed.
func defaultConfig() Config {
	return Config{
		Log:    service.LogSettings{Level: "warn", Format: "console"},
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Venue: gmx.DefaultConfig(),
		Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(),
		Tier: tier.DefaultConfig(), Liquidation: liquidation.DefaultConfig(), Notify: receivers.DefaultConfig(),
		Emergency: emergency.DefaultConfig(), Signer: signer.DefaultConfig(),
		Scanner: Scanner{Price: sources.DefaultConfig()},
		Own: Settings{
			Limit: 50, Patience: 30 * time.Second, DryRun: true, EmergencySigner: signer.DefaultConfig(),
		},
	}
}

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return errors.Join(
		check.Refuse(s.Limit < 1, "limit: %d is less than 1", s.Limit),
		check.Refuse(s.Patience < 100*time.Millisecond, "patience: %s is less than 100ms", s.Patience),
		check.Between("replication", s.Replication, 0, 10),
	)
}
