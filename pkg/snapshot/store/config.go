package store

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"perpkeeper/pkg/check"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/snapshot"
)

// Config is the [snapshot] section: where this keeper's snapshots are kept, when they are taken, and how many stay.
type Config struct {
	// Location is a folder's absolute path, or s3://HOST[:PORT]/BUCKET[/PREFIX] (TLS), or s3+http:// without TLS.
	Location  string        `toml:"location" help:"where this keeper's snapshots of the state are kept, and no other keeper's: a folder (absolute path), or s3://HOST/BUCKET[/PREFIX] (s3+http:// without TLS); empty = nowhere"`
	AccessKey secret.String `toml:"access_key" help:"of the S3 API: name of the access key"`
	SecretKey secret.String `toml:"secret_key" help:"of the S3 API: the access key's secret"`
	Region    string        `toml:"region" help:"of the S3 API: the bucket's region; empty = the server is asked"`
	Every     time.Duration `toml:"every" help:"how often statevm takes a snapshot; 0 = only keeperctl does"`
	Keep      int           `toml:"keep" help:"how many snapshots stay; whoever takes one removes the older ones"`
}

// DefaultConfig takes none: where a copy is safe only the operator knows.
func DefaultConfig() Config { return Config{Keep: 3} }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	var location error
	if c.Location != "" {
		_, location = c.parse()
	}
	return errors.Join(
		check.Refuse(location != nil, "location: %w", location),
		check.Refuse(c.AccessKey.IsSet() != c.SecretKey.IsSet(),
			"access_key, secret_key: only one is set (set both, or none)"),
		check.Refuse(c.Every != 0 && (c.Every < time.Minute || c.Every > 30*24*time.Hour),
			"every: %s is not between 1m and 720h (0 = never)", c.Every),
		check.Refuse(c.Every > 0 && c.Location == "",
			"every: is set and location is not (say where to keep snapshots)"),
		check.Between("keep", c.Keep, 1, 1000),
	)
}

// Allows returns why a log topic that keeps its records for so long cannot be rebuilt from; 0 = for ever. Two snapshots
// have to fall into it: the newer one may be the one that cannot be used.
func (c Config) Allows(retention time.Duration) error {
	switch {
	case retention == 0:
		return nil
	case c.Location == "" || c.Every == 0:
		return fmt.Errorf("keeper.log_retention is %s, and nobody takes snapshots: what the topic has dropped could "+
			"never be rebuilt (set snapshot.location and snapshot.every, or log_retention to 0)", retention)
	case c.Every > retention/2:
		return fmt.Errorf("keeper.log_retention is %s, and snapshots are taken every %s: two have to fall into it "+
			"(take them more often, or keep the topic longer)", retention, c.Every)
	}
	return nil
}

// place is a location, taken apart.
type place struct {
	folder string // or:

	host, bucket, prefix string
	plain                bool // without TLS
}

func (c Config) parse() (place, error) {
	scheme, _, isURL := strings.Cut(c.Location, "://")
	if !isURL {
		if !filepath.IsAbs(c.Location) {
			return place{}, fmt.Errorf("%q is neither an absolute path nor s3://HOST/BUCKET", c.Location)
		}
		return place{folder: filepath.Clean(c.Location)}, nil
	}
	u, err := url.Parse(c.Location)
	if err != nil || scheme != "s3" && scheme != "s3+http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		// It is not repeated: somebody may have written a key into it.
		return place{}, errors.New("it is not s3://HOST[:PORT]/BUCKET[/PREFIX] (keys go into access_key and " +
			"secret_key)")
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if bucket == "" {
		return place{}, fmt.Errorf("%s names no bucket", c.Location)
	}
	if prefix != "" {
		prefix += "/"
	}
	return place{host: u.Host, bucket: bucket, prefix: prefix, plain: scheme == "s3+http"}, nil
}

// Open prepares the store. It asks nobody yet.
func Open(c Config) (snapshot.Store, error) {
	if c.Location == "" {
		return nil, errors.New("snapshot.location is not set (say where to keep snapshots)")
	}
	at, err := c.parse()
	if err != nil {
		return nil, fmt.Errorf("snapshot.location: %w", err)
	}
	if at.folder != "" {
		return folder(at.folder), nil
	}
	return openBucket(at, c)
}
