package keeperctl

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
)

// askedOfChain bounds all that init reads from the chain.
const askedOfChain = 3 * time.Minute

// answers are what init is told, by flags or on the terminal.
type answers struct {
	dir, rpc, venue, tier, peers, signers, start, prices, kafka, postgres string
	bare                                                                  bool
}

// initCommand writes the configuration of a new region: it reads from the chain what stands there, and asks for the
// rest.
func initCommand(cmd *cobra.Command) runner {
	var a answers
	flags := cmd.Flags()
	flags.BoolVar(&a.bare, "bare", false, "for a machine without Docker: a file of environment variables a process")
	flags.StringVar(&a.dir, "dir", "", "folder to write to (deploy/compose, or with --bare one of the region's name)")
	flags.StringVar(&a.rpc, "rpc", "", "the chain's endpoints, separated by commas, the preferred one first")
	flags.StringVar(&a.venue, "venue", "", "address of a contract of the exchange, such as its DataStore")
	flags.StringVar(&a.tier, "tier", "", "this keeper's tier: 1 is the Master")
	flags.StringVar(&a.peers, "peers", "", "the other keepers' signers: \"2=0xA,0xB 3=0xC\", or none")
	flags.StringVar(&a.signers, "signers", "", "this keeper's signers, separated by commas (those of the keystores)")
	flags.StringVar(&a.start, "start-block", "", "block in which the exchange was made (looked for on the chain)")
	flags.StringVar(&a.prices, "prices", "", "sources of prices: KIND=URL of devnet or gmx, or streams; by commas")
	flags.StringVar(&a.kafka, "kafka", "127.0.0.1:9092", "with --bare: Kafka's brokers, separated by commas")
	flags.StringVar(&a.postgres, "postgres", "postgres://keeper@127.0.0.1:5432/keeper?sslmode=disable",
		"with --bare: the database, as its owner")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 || !regionName.MatchString(args[0]) {
			return usagef("name the region in small letters, digits, - and _; usage: %s init REGION", program)
		}
		ctx, cancel := context.WithTimeout(ctx, askedOfChain)
		defer cancel()
		r, err := newRegion(args[0], &a)
		if err != nil {
			return err
		}
		if err := r.fill(ctx, &a, questions{bufio.NewReader(s.in), s.err}); err != nil {
			return err
		}
		return r.write(s.out)
	}
}

var regionName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// region is what the files of a region are made of.
type region struct {
	Name, Dir, Secrets, Keys, Price string // Price is where processes find the keys of price services
	Bare                            bool

	Endpoints           []secret.URL
	ChainID, StartBlock uint64
	Store, Oracle       chain.Address
	Tokens              []token
	Signers             []chain.Address
	Adl, Frozen         bool // roles that all signers hold

	Tier, Tiers int
	Peers       []tier.Peer
	Sources     []priceSource

	Kafka    []string
	Postgres database
}

// newRegion knows where the files go, and refuses a region that there is.
func newRegion(name string, a *answers) (*region, error) {
	r := &region{Name: name, Bare: a.bare, Dir: cmp.Or(a.dir, "deploy/compose")}
	r.Secrets, r.Keys = filepath.Join(r.Dir, "secrets", name), filepath.Join(r.Dir, "keys", name)
	r.Price = "/etc/perpkeeper/price"
	if r.Bare {
		var err error
		if r.Dir, err = filepath.Abs(cmp.Or(a.dir, name)); err != nil {
			return nil, err
		}
		r.Secrets, r.Keys = filepath.Join(r.Dir, "secrets"), filepath.Join(r.Dir, "keys")
		r.Price = filepath.Join(r.Secrets, "price")
		if r.Kafka = strings.Split(a.kafka, ","); a.kafka == "" {
			return nil, usagef("--kafka: names no broker")
		}
		if r.Postgres, err = databaseOf(a.postgres); err != nil {
			return nil, usagef("--postgres: %w", err)
		}
	}
	return r, r.refuseExisting()
}

// fill reads, and asks for what cannot be read.
func (r *region) fill(ctx context.Context, a *answers, q questions) (err error) {
	if r.Endpoints, err = askFor(q, &a.rpc, "rpc", "endpoints of the chain, separated by commas", "", list(
		secret.ParseURL)); err != nil {
		return err
	}
	node, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer node.Close()
	venue, err := askFor(q, &a.venue, "venue", "address of a contract of the exchange", "", chain.ParseAddress)
	if err != nil {
		return err
	}
	found := keystoresOf(r.Keys)
	if r.Signers, err = askFor(q, &a.signers, "signers", "addresses of this keeper's signers ("+program+
		" keystore makes one)", found, list(chain.ParseAddress)); err != nil {
		return err
	}
	others, err := r.readVenue(ctx, node, venue)
	if err != nil {
		return err
	}
	if r.Tier, err = askFor(q, &a.tier, "tier", "this keeper's tier (1 is the Master)", "", strconv.Atoi); err != nil {
		return err
	}
	if r.Peers, err = askFor(q, &a.peers, "peers", "signers of the other keepers, as 2=0xA,0xB 3=0xC"+others, "none",
		peersOf); err != nil {
		return err
	}
	if err = r.checkTiers(); err != nil {
		return err
	}
	first, unknown := firstBlock(ctx, node, r.Store)
	if unknown != nil {
		first = ""
		_, _ = fmt.Fprintf(q.out, "the block in which %s was made cannot be read (%s)\n", r.Store,
			inLine(unknown.Error()))
	}
	if r.StartBlock, err = askFor(q, &a.start, "start-block", "block in which the exchange's DataStore was made", first,
		parseBlock); err != nil {
		return err
	}
	kinds, err := askFor(q, &a.prices, "prices", "sources of prices: gmx=URL or streams, or both", "",
		list(priceKind))
	if err != nil {
		return err
	}
	return r.addSources(kinds)
}

// checkTiers judges the tiers as the processes do.
func (r *region) checkTiers() error {
	cfg := tier.DefaultConfig()
	for _, p := range r.Peers {
		cfg.Tiers = max(cfg.Tiers, p.Tier)
	}
	r.Tiers = max(cfg.Tiers, r.Tier)
	cfg.Enabled, cfg.Priority, cfg.Tiers, cfg.Peers = r.Shares(), r.Tier, r.Tiers, r.Peers
	if err := cfg.Validate(); err != nil {
		return usagef("tiers: %w", err)
	}
	return nil
}

// Shares reports whether there are other keepers.
func (r *region) Shares() bool { return r.Tier > 1 || len(r.Peers) > 0 }

// questions are put to whoever sits at the terminal. Where nobody answers, what has a default has that.
type questions struct {
	in  *bufio.Reader
	out io.Writer
}

// askFor asks for what no flag has said, and reads it.
func askFor[T any](q questions, said *string, flag, question, otherwise string, parse func(string) (T, error)) (T,
	error) {
	var none T
	if *said == "" {
		if otherwise != "" {
			question += " [" + otherwise + "]"
		}
		_, _ = fmt.Fprintf(q.out, "%s: ", question)
		line, err := q.in.ReadString('\n')
		if err != nil {
			_, _ = fmt.Fprintln(q.out)
		}
		if *said = cmp.Or(strings.TrimSpace(line), otherwise); *said == "" {
			return none, usagef("--%s: is not given", flag)
		}
	}
	value, err := parse(*said)
	if err != nil {
		return none, usagef("--%s: %w", flag, err)
	}
	return value, nil
}

// list reads what is separated by commas.
func list[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) (all []T, err error) {
		for part := range strings.SplitSeq(text, ",") {
			one, err := parse(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
}

func parseBlock(text string) (uint64, error) { return strconv.ParseUint(text, 10, 63) }

// peersOf reads TIER=ADDRESS,… of several tiers.
func peersOf(text string) (peers []tier.Peer, err error) {
	if text == "none" {
		return nil, nil
	}
	for one := range strings.FieldsSeq(text) {
		number, signers, _ := strings.Cut(one, "=")
		p := tier.Peer{}
		if p.Tier, err = strconv.Atoi(number); err != nil {
			return nil, err
		}
		if p.Signers, err = list(chain.ParseAddress)(signers); err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}
