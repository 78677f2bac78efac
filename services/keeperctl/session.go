package keeperctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service/config"
)

// session is one invocation of a command: its settings, and its connections.
type session struct {
	Config

	in   io.Reader
	out  printer
	err  io.Writer
	bare io.Writer   // standard output as it is, for what is no text
	set  *config.Set // the configuration in force
	log  zerolog.Logger
	// standard output itself where a person looks at it, for lines that are written over; nil elsewhere
	terminal io.Writer

	opening sync.Mutex
	opened  []func() // what ends with the command, in the order of opening
}

// keep has something closed when the command has ended.
func (s *session) keep(closing func()) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.opened = append(s.opened, closing)
}

// close closes what was opened. More can be opened afterwards.
func (s *session) close() {
	s.opening.Lock()
	defer s.opening.Unlock()
	for _, closing := range slices.Backward(s.opened) {
		closing()
	}
	s.opened = nil
}

// notAskedError reports that the question could not be put: nobody there, nobody let in, or a schema of another build.
type notAskedError struct{ error }

// Unwrap returns the reason.
func (e notAskedError) Unwrap() error { return e.error }

func notAsked(err error) error {
	if err == nil {
		return nil
	}
	return notAskedError{err}
}

// within is a context that ends after keeperctl.patience.
func (s *session) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.Own.Patience,
		fmt.Errorf("gave up after %s (keeperctl.patience)", s.Own.Patience))
}

// database connects to a database that this build can work with, until the command ends.
func (s *session) database(ctx context.Context) (*pg.DB, error) {
	db, err := s.anyDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.CheckSchema(ctx); err != nil {
		return nil, notAsked(err)
	}
	return db, nil
}

// anyDatabase connects to a database of whatever schema.
func (s *session) anyDatabase(ctx context.Context) (*pg.DB, error) {
	db, err := s.unasked(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.Health(ctx); err != nil {
		return nil, notAsked(pg.Lasting(err))
	}
	return db, nil
}

// unasked prepares connections to the database. It is asked when it is used.
func (s *session) unasked(ctx context.Context) (*pg.DB, error) {
	db, err := pg.Open(ctx, s.Postgres, program)
	if err != nil {
		return nil, notAsked(fmt.Errorf("opening postgres: %w", err))
	}
	s.keep(db.Close)
	return db, nil
}

// kafka prepares a client. The brokers are asked when it is used.
func (s *session) kafka() (*bus.Client, error) {
	client, err := bus.New(s.Kafka, s.log, bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, notAsked(fmt.Errorf("preparing the kafka client: %w", err))
	}
	s.keep(client.Close)
	return client, nil
}

// node connects to the chain.
func (s *session) node(ctx context.Context) (*evm.Client, error) {
	node, err := evm.Dial(ctx, s.Keeper.ChainID, s.Chain, s.log, evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, notAsked(fmt.Errorf("connecting to the chain: %w", err))
	}
	s.keep(node.Close)
	return node, nil
}
