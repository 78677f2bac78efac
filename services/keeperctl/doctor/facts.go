package doctor

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
)

// Facts is what is known of a keeper at one moment. What nobody could be asked for is nil or empty.
type Facts struct {
	Pre         bool // nothing runs yet: only configuration, endpoints, keys, sources and contracts were asked
	Development bool // keys of a test chain are configured: one host and one source will do, and nobody has to be told

	Settings   Settings
	Endpoints  []Endpoint
	Hosts      int // different hosts among them
	Venue      *Venue
	VenueError error // why the contracts could not be asked, although there are endpoints
	Signers    []Signer
	KeysError  error           // why the keys could not be opened; nil where they could, or were not asked for
	Keys       []chain.Address // what the keys that could be opened sign for
	KeysAsked  bool            // a place for keys is configured
	Sources    []Source
	Topics     *Topics
	State      *State
	Machine    Machine
}

// Settings is what the processes are configured with.
type Settings struct {
	ChainID       uint64
	StartBlock    uint64
	Monitor       bool // it sends nothing, and needs no keys
	Shadow        bool // nor does it: it simulates as signers whose keys others have
	Signers       []chain.Address
	Bindings      []Binding // signers that take some lanes only; whoever is not named takes all
	Adl, Frozen   bool      // the roles that planner and sender take the signers to hold
	Tier          tier.Config
	MaxLag        time.Duration // how far an endpoint may be behind the best
	LogPartitions int
	Price         price.Gates // what is believed of reports
}

// Binding is a signer and the lanes it takes.
type Binding struct {
	Signer chain.Address `toml:"signer" help:"one of keeper.signers"`
	Lanes  []job.Lane    `toml:"lanes" help:"the lanes it takes: liquidation, order, maintenance"`
}

// Endpoint is one JSON-RPC endpoint by itself. An error means that it was asked, and holds the answer; what
// was not asked has none.
type Endpoint struct {
	Name    string // without its key
	Private bool   // takes transactions only
	Down    error  // it does not answer
	Wrong   error  // it answers for another chain
	Head    chain.BlockRef
	// Final is the block it calls final.
	Final                                 chain.BlockRef
	FinalError, ReceiptsError, StateError error
	HistoryError, BatchError              error      // receipts of the start block; headers in a batch
	Settled                               chain.Hash // what it has for Agreed
	SettledNumber                         uint64     // a block all of them call final; 0 = not asked
	OldState                              bool       // it has the state of the start block
	// CallGas is what calls may use of a block; 0 = not known.
	CallGas uint64
	// Software is what it calls itself, and Forks are those that it is to be ready for by now.
	Software string
	Forks    []evm.Fork
	// PerSecond is how many requests a second it takes, found by its refusing some; 0 = it refused none.
	PerSecond float64
}

// Venue is what was read from the contracts.
type Venue struct {
	DataStore, Roles chain.Address   // Roles is zero where the DataStore is none
	Emitter          chain.Address   // the configured EventEmitter, where it is none of Emitters
	Emitters         []chain.Address // those of the exchange's handlers
	Missing          []string        // kinds of job that the keeper needs to do, and no contract does
	Markets          int
	// MarketsAtStart is how many markets there were in the block before the start block; -1 where no endpoint knows.
	MarketsAtStart int
	Tokens         []Token
	// Providers holds for each provider of reports whether the exchange takes reports from it.
	Providers map[chain.Address]bool
}

// Token is one that a market of the exchange needs prices of.
type Token struct {
	Address  chain.Address
	Decimals int // -1 where there is no contract that says: a synthetic one
}

// Signer is an account the keeper sends from.
type Signer struct {
	Address chain.Address
	Roles   map[string]bool // by name; nil = the RoleStore could not be asked
	Balance *chain.Uint     // wei
	// Known is true when the database has it; what follows is meaningless otherwise.
	Known    bool
	Paused   string
	Attended bool // a sender has its lease
	// LeaseAhead is true when the lease was written ahead of the database's clock.
	LeaseAhead bool
	NextNonce  uint64
	InFlight   int
	Latest     *uint64    // its next number by the chain
	Spent      chain.Uint // wei in the last 24 h
	// Gaps are numbers without a transaction that keep others from being mined.
	Gaps []uint64
}

// Source is one source of prices by itself.
type Source struct {
	Name       string
	Error      error // why nothing came
	Unreadable error // what came and is no report
	Reports    map[chain.Address]Report
	// Decimals are those configured, by token; empty where the source needs none.
	Decimals map[chain.Address]uint8
	MaxAge   time.Duration // its own bound; 0 = that of all
}

// Report is the newest of a token.
type Report struct {
	Provider chain.Address
	Min, Max chain.Uint // USD of 30 decimals, per smallest unit
	TimeMs   uint64     // when the price was found
}

// Topics is what the brokers hold.
type Topics struct {
	Error error // the brokers do not answer
	All   []Topic
	// Lag is by partition of the log topic how many records statevm has not applied.
	Lag []int64
	// Unsent is how many results have not been delivered, by the receiver's name.
	Unsent      map[string]int64
	DeadLetters int64    // of the last hour
	Disputes    []string // whom endpoints were at odds about in the last hour, and why, oldest first
	// Reports are the times of the newest report by token, on the price topic.
	Reports map[chain.Address]uint64
	Stuck   []string // why nothing with a token can be executed, a sentence each
}

// Topic is one topic.
type Topic struct {
	Name             string
	Error            error
	Missing          bool
	Partitions, Want int
	Copies, InSync   int   // of the partition with the fewest in sync
	Leaderless       int   // partitions
	Settings         error // those that do not serve
}

// State is what the database holds.
type State struct {
	Error      error // it does not answer
	Schema     error // this build cannot work with it
	Halted     string
	Started    bool // there is a block
	Block      uint64
	TimeMs     uint64
	Skew       uint64 // blocks
	Partitions int    // those of its log topic; 0 until the first claim
	Leftover   []int  // generations that are filled and not in use
	Failed     int    // liquidations that could not be done
	Parked     int    // delayed jobs that were given up
	Unready    []Process
	Seen       Seen
}

// Seen is taken from the metrics of the processes, since each of them started.
type Seen struct {
	Requests  float64 // to endpoints
	Throttled float64 // of these, what endpoints refused for their number
	// Executed are the executions that the chain shows, by tier; 0 is somebody who is no keeper that is configured.
	Executed map[int]float64
	Ages     map[int][]AgeCount // of the executed jobs, by tier, in rising order
}

// AgeCount is how many jobs were executed at an age or below it.
type AgeCount struct {
	Age   time.Duration
	Count float64
}

// Process is one that is not ready.
type Process struct{ Name, Why string }

// Machine is where this runs, and who receives its alerts.
type Machine struct {
	Now   time.Time
	Disks []Disk
	// Unwatched is true when Alertmanager answers and has no Watchdog, which always fires.
	Unwatched bool
	// Operator is true when the operators have a receiver in [notify]; Alertmanager that one is, and AlertsError why it
	// does not answer.
	Operator, Alertmanager bool
	AlertsError            error
}

// Disk is a file system.
type Disk struct {
	Path        string
	Error       error
	Free, Total uint64 // bytes
}
