package keeperctl

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/jobstory"
	"perpkeeper/pkg/operator/replay"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/keeperctl/doctor"
)

const (
	// casesFile is what keeperctl replay --from reads of a bug report.
	casesFile = "replay.json"
	// mostCases is of how many publications of a job's key, the newest, a report holds what they were made from.
	mostCases = 20
)

// part is one file of a bug report: what a command prints, without colours and without secrets.
type part struct {
	name string
	make func(ctx context.Context, s *session) error
}

// bugReport writes everything that somebody elsewhere needs to understand a fault into one file.
func bugReport(ctx context.Context, s *session, args []string) error {
	if len(args) == 0 {
		return usagef("usage: keeperctl bugreport FILE [JOB ...] (FILE - is standard output)")
	}
	parts, err := s.parts(args[1:])
	if err != nil {
		return err
	}
	files, missing := s.makeParts(ctx, parts)
	about := map[string]any{
		"keeper": fmt.Sprintf("chain %d, %s", s.Keeper.ChainID, s.place()), "at": time.Now().UTC(), "jobs": args[1:],
		"keeperctl": service.ReadBuild(program), "problems": missing,
		"files": slices.Sorted(maps.Keys(files)),
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	files["about.json"] = append(text, '\n')
	archive, err := pack(files, secret.Scrubber(s.set.Secrets()...))
	if err != nil {
		return err
	}
	if args[0] == "-" {
		_, err = s.bare.Write(archive)
		return err
	}
	if err := os.WriteFile(args[0], archive, 0o600); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if err := sayf(s.out, "%s: %s\n", name, inLine(missing[name])); err != nil {
			return err
		}
	}
	return sayf(s.out, "%s: %d files, %d bytes\n", args[0], len(files), len(archive))
}

// parts are the files of a report about some jobs.
func (s *session) parts(jobs []string) ([]part, error) {
	parts := []part{
		{"keeperctl.toml", func(_ context.Context, s *session) error { return s.set.WriteTOML(s.out) }},
		{"doctor.json", func(ctx context.Context, s *session) error {
			facts := s.facts(ctx, false)
			found, areas := doctor.Examine(facts)
			return s.printFindings(false, facts.CallGas(), found, areas)
		}},
		{"status.json", func(ctx context.Context, s *session) error { return s.show(s.look(ctx)) }},
		{"topics.json", topicEnds},
		{"disputes.json", disputes},
		{"generations.json", func(ctx context.Context, s *session) error {
			return stateGenerations(ctx, s, []string{"list"})
		}},
	}
	for _, process := range s.Own.Processes {
		for page, file := range map[string]string{"version": "version.json", "readyz": "readyz.txt",
			"metrics": "metrics.txt", "log": "log.jsonl", "status": "status.json"} {
			parts = append(parts, part{process.Name + "/" + file, func(ctx context.Context, s *session) error {
				text, code, err := status.Get(ctx, process.URL+"/"+page)
				switch {
				case err != nil || code == http.StatusOK || page == "readyz":
				case code == http.StatusNotFound: // it asks no endpoints
					text = ""
				default:
					err = fmt.Errorf("it answers %d", code)
				}
				return errors.Join(sayf(s.out, "%s", text), err)
			}})
		}
	}
	for i, name := range jobs {
		if _, err := jobstory.Wanted(name); err != nil {
			return nil, usagef("%w", err)
		}
		parts = append(parts, part{fmt.Sprintf("job-%d.json", i+1), func(ctx context.Context, s *session) error {
			y, err := s.story(ctx, name, time.Now().Add(-24*time.Hour))
			if err != nil {
				return err
			}
			return s.out.story(y, true)
		}})
	}
	if len(jobs) > 0 {
		parts = append(parts, part{casesFile, func(ctx context.Context, s *session) error {
			return s.keepCases(ctx, jobs)
		}})
	}
	return parts, nil
}

// makeParts makes all files at once, each with connections of its own, and returns what kept any from being made whole.
func (s *session) makeParts(ctx context.Context, parts []part) (files map[string][]byte, missing map[string]string) {
	files, missing = map[string][]byte{}, map[string]string{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, p := range parts {
		wait.Go(func() {
			ctx, cancel := s.within(ctx)
			defer cancel()
			var text bytes.Buffer
			one := &session{Config: s.Config, set: s.set, log: zerolog.Nop(), out: printer{&text, true}}
			defer one.close()
			err := p.make(ctx, one)
			mu.Lock()
			defer mu.Unlock()
			if files[p.name] = text.Bytes(); err != nil {
				missing[p.name] = err.Error()
			}
		})
	}
	wait.Wait()
	return files, missing
}

// pack makes one archive of files, without secrets.
func pack(files map[string][]byte, secrets *strings.Replacer) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := secrets.Replace(string(files[name]))
		err := archive.WriteHeader(&tar.Header{Name: "bugreport/" + name, Mode: 0o600, Size: int64(len(text)),
			ModTime: time.Now()})
		if err == nil {
			_, err = io.WriteString(archive, text)
		}
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	err := errors.Join(archive.Close(), zip.Close())
	return packed.Bytes(), err
}

// unpack returns one file of a report.
func unpack(report, name string) ([]byte, error) {
	file, err := os.Open(report)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s is no bug report: %w", report, err)
	}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s holds no %s: name jobs when a report is made", report, name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", report, err)
		}
		if header.Name == "bugreport/"+name {
			return io.ReadAll(archive)
		}
	}
}

// topicEnds prints where the topics begin and end.
func topicEnds(ctx context.Context, s *session) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	rows := newTable("topic", "partition", "first", "end")
	for _, topic := range s.Keeper.Topics() {
		for n := range topic.Partitions {
			first, end, err := client.Bounds(ctx, topic.Name, n)
			if err != nil {
				return errors.Join(s.out.table(rows), fmt.Errorf("%s/%d: %w", topic.Name, n, err))
			}
			rows.add(topic.Name, n, first, end)
		}
	}
	return s.out.table(rows)
}

// disputes prints what endpoints were caught in, or said against each other, in the last week.
func disputes(ctx context.Context, s *session) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	found, err := deadletter.Topic{Client: client, Keeper: s.Keeper}.Letters(ctx, wire.Disputes, 0)
	shown := []any{}
	for _, l := range found {
		if time.Since(l.Time) < 7*24*time.Hour {
			shown = append(shown, shownOf(l.Record, true))
		}
	}
	return errors.Join(s.out.object(shown), err)
}

// keepCases prints what the decisions about jobs were made from.
func (s *session) keepCases(ctx context.Context, jobs []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	var published []replay.PublishedJob
	for _, name := range jobs {
		y, err := s.story(ctx, name, time.Now())
		if err != nil {
			return err
		}
		for _, key := range y.Keys {
			said, err := replay.ReadJobs(ctx, client, s.Keeper, 0, math.MaxUint64, key)
			if err != nil {
				return err
			}
			published = append(published, said[max(0, len(said)-mostCases):]...)
		}
	}
	block := func(p replay.PublishedJob) uint64 { return p.Job.Evidence.Block.Number }
	slices.SortStableFunc(published, func(a, b replay.PublishedJob) int { return cmp.Compare(block(a), block(b)) })
	if len(published) == 0 {
		return errors.New("no planner has published these jobs, as far back as the topic goes")
	}
	past, reports, err := s.past(ctx, client, block(published[len(published)-1]))
	if err != nil {
		return err
	}
	cases, err := replay.Gather(past, s.Venue.Decoder(), reports, s.rules(), published)
	if err != nil {
		return err
	}
	return json.NewEncoder(s.out).Encode(cases) //nolint:musttag // The names of the fields are the format.
}

// past reads what decisions were made from, up to a block.
func (s *session) past(ctx context.Context, client *bus.Client, last uint64) (*replay.Past, *replay.Reports, error) {
	past, err := replay.Read(ctx, client, s.Keeper, last)
	if err != nil {
		return nil, nil, notAsked(err)
	}
	reports, err := replay.ReadReports(ctx, client, s.Keeper.ChainID)
	return past, reports, notAsked(err)
}

// repeatReport makes the decisions of a bug report again, from that file alone.
func repeatReport(out printer, report string, key chain.Hash) error {
	text, err := unpack(report, casesFile)
	if err != nil {
		return notAsked(err)
	}
	var cases []replay.Case
	if err := json.Unmarshal(text, &cases); err != nil { //nolint:musttag // The names of the fields are the format.
		return notAsked(fmt.Errorf("reading %s of %s: %w", casesFile, report, err))
	}
	var all []replay.Repeated
	for _, c := range cases {
		if !key.IsZero() && c.Job.Key != key {
			continue
		}
		again, err := c.Again()
		if err != nil {
			return fmt.Errorf("repeating %s of %s: %w", c.Job.ID, report, err)
		}
		all = append(all, again)
	}
	return printRepeated(out, all, true)
}
