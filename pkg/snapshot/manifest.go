package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"perpkeeper/pkg/chain"
)

// format is the version of manifest and files. It is raised by whoever changes either.
const format = 1

// Manifest describes a snapshot, and what its files have to be.
type Manifest struct {
	Format int `json:"format"`
	// Layout is the version of the state's tables; rows of another one cannot be restored.
	Layout     int       `json:"layout"`
	ChainID    uint64    `json:"chain_id"`
	Generation int       `json:"generation"` // that it was taken of
	Taken      time.Time `json:"taken"`
	// Parts has an entry for each partition of the log topic, in order.
	Parts []Part `json:"partitions"`
}

// Part is one partition: where it stood, and its file.
type Part struct {
	Partition int `json:"partition"`
	// Next is the offset of the first record of the log topic that is not in it.
	Next int64 `json:"next_offset"`
	// Tip is the last block applied. Final is the block that was final then: the rows can be taken back to it.
	Tip   chain.BlockRef `json:"tip"`
	Final chain.BlockRef `json:"final"`
	File  string         `json:"file"`
	Bytes int64          `json:"bytes"` // of the file
	Sum   string         `json:"sha256"`
	// Tables stand in the order of the file.
	Tables []Table `json:"tables"`
}

// Table is one table of a partition.
type Table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// Rows is how many rows all tables have.
func (m Manifest) Rows() (n int64) {
	for _, rows := range m.TableRows() {
		n += rows
	}
	return n
}

// TableRows is how many rows each table has, in all partitions.
func (m Manifest) TableRows() map[string]int64 {
	rows := map[string]int64{}
	for _, p := range m.Parts {
		for _, t := range p.Tables {
			rows[t.Name] += t.Rows
		}
	}
	return rows
}

// Bytes is how large all files are.
func (m Manifest) Bytes() (n int64) {
	for _, p := range m.Parts {
		n += p.Bytes
	}
	return n
}

// FinalBlock is the highest block that is final in all partitions.
func (m Manifest) FinalBlock() (lowest chain.BlockRef) {
	for i, p := range m.Parts {
		if i == 0 || p.Final.Number < lowest.Number {
			lowest = p.Final
		}
	}
	return lowest
}

const manifestFile = "manifest.json"

// fileOf is the file of a partition.
func fileOf(partition int) string { return fmt.Sprintf("partition-%d.zst", partition) }

// timeLayout is how a name begins. Names in their order are snapshots in theirs.
const timeLayout = "20060102T150405Z"

var validName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9]+-[0-9]+$`)

// Name of a snapshot: when it was taken (UTC), chain, and the block that was final.
func (m Manifest) Name() string {
	return fmt.Sprintf("%s-%d-%d", m.Taken.UTC().Format(timeLayout), m.ChainID, m.FinalBlock().Number)
}

// TakenAt is the time in a snapshot's name.
func TakenAt(name string) (time.Time, bool) {
	if !validName.MatchString(name) {
		return time.Time{}, false
	}
	at, err := time.Parse(timeLayout, name[:len(timeLayout)])
	return at, err == nil
}

// encode writes a manifest and, as a line of its own, the checksum of what is above it.
func (m Manifest) encode() ([]byte, error) {
	//nolint:musttag // a chain.BlockRef stands in the file by its fields' own names
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return append(text, checksumOf(text)+"\n"...), nil
}

func checksumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var errManifest = errors.New("its manifest is torn or altered")

// decodeManifest refuses what is not, to the byte, what was written.
func decodeManifest(text []byte) (m Manifest, err error) {
	line := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	if line == 0 || string(text[line:]) != checksumOf(text[:line])+"\n" {
		return Manifest{}, errManifest
	}
	//nolint:musttag // see encode
	if err := json.Unmarshal(text[:line], &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", errManifest, err)
	}
	if m.Format != format {
		return Manifest{}, fmt.Errorf("it has format %d, this build reads %d (use the build that wrote it)", m.Format,
			format)
	}
	for i, p := range m.Parts {
		if p.Partition != i || p.File != fileOf(i) {
			return Manifest{}, fmt.Errorf("%w: partition %d stands at place %d", errManifest, p.Partition, i)
		}
	}
	if len(m.Parts) == 0 {
		return Manifest{}, fmt.Errorf("%w: there is no partition in it", errManifest)
	}
	return m, nil
}
