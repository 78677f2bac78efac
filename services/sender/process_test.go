package sender

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/programs"
)

// launch starts the sender as it is shipped, with the site's configuration.
func (s *site) launch(key secret.String) *programs.Process {
	s.t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.cfg
	var urls []string
	for _, u := range c.Chain.URLs {
		urls = append(urls, u.Reveal())
	}
	p := programs.NewProcess(s.t, "sender", filepath.Join(folder, "sender"), []string{
		fmt.Sprintf("PERPKEEPER_KEEPER_CHAIN_ID=%d", c.Keeper.ChainID),
		fmt.Sprintf("PERPKEEPER_KEEPER_LOG_PARTITIONS=%d", c.Keeper.LogPartitions),
		fmt.Sprintf("PERPKEEPER_KEEPER_JOB_PARTITIONS=%d", c.Keeper.JobPartitions),
		"PERPKEEPER_CHAIN_URLS=" + strings.Join(urls, ","),
		"PERPKEEPER_KAFKA_BROKERS=" + strings.Join(c.Kafka.Brokers, ","),
		fmt.Sprintf("PERPKEEPER_KAFKA_SESSION_TIMEOUT=%s", c.Kafka.SessionTimeout),
		"PERPKEEPER_POSTGRES_URL=" + c.Postgres.URL.Reveal(),
		"PERPKEEPER_VENUE_DATA_STORE=" + c.Venue.DataStore.Hex(),
		"PERPKEEPER_SIGNER_DEV=true", "PERPKEEPER_SIGNER_DEV_KEYS=" + key.Reveal(),
		"PERPKEEPER_SENDER_MODE=" + c.Sender.Mode,
		fmt.Sprintf("PERPKEEPER_SENDER_LEASE_TTL=%s", max(c.Sender.LeaseTTL, 3*time.Second)),
		fmt.Sprintf("PERPKEEPER_SENDER_MAX_LAG=%s", c.Sender.MaxLag),
	})
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	return p
}
