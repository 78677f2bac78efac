package keeperctl

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/jobstory"
	"perpkeeper/pkg/operator/text"
)

// jobCommand prints what is stored of a job, in the order in which it happened.
func jobCommand(cmd *cobra.Command) runner {
	since := cmd.Flags().Duration("since", 10*time.Minute, "how far back topics are read for a job that this "+
		"keeper's database does not know")
	all := cmd.Flags().Bool("all", false, "tell every step, and where it stands; without it the newest job's ten "+
		"lines. JSON has every step in any case")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 {
			return usagef("name one job: its id, the key of its position, order or request, a transaction, or an " +
				"account")
		}
		y, err := s.story(ctx, args[0], time.Now().Add(-*since))
		if err != nil {
			return err
		}
		return s.out.story(y, *all)
	}
}

// story reads a job's, from the topics since a time where this keeper's database does not know it.
func (s *session) story(ctx context.Context, name string, since time.Time) (*jobstory.Story, error) {
	wanted, err := jobstory.Wanted(name)
	if err != nil {
		return nil, usagef("%w", err)
	}
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	client, err := s.kafka()
	if err != nil {
		return nil, err
	}
	source := jobstory.Source{DB: db, Kafka: client, Keeper: s.Keeper, Tier: s.Tier, Signers: s.Keeper.Signers,
		Limit: s.Own.Limit, Names: s.names(ctx, db)}
	y, err := source.Read(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return y, notAsked(y.AddTopics(ctx, since))
}

// story prints the summary of a story, or all of it, each line with its age since the due time of its job, and whose
// turn that is. What no job is known of has no summary.
func (p printer) story(y *jobstory.Story, all bool) error {
	if len(y.Lines) == 0 {
		return errors.New("nothing is known of it here: neither the state nor the database nor the topics of the " +
			"last minutes (--since) have it")
	}
	if points := y.Summary(); len(points) > 0 && !all && !p.json {
		rows := newTable("what", "said")
		for _, point := range points {
			rows.add(point.What, y.Names.In(point.Said))
		}
		return errors.Join(p.table(rows), p.note("\nevery step: --all"))
	}
	y.Sort()
	rows := newTable("at", "age", "turn", "job", "attempt", "what", "where", "said")
	for _, l := range y.Lines {
		age, turn := "-", "-"
		if since, known := y.Age(l); known {
			age, turn = since.Round(100*time.Millisecond).String(), y.Turn(l, since)
		}
		attempt := any("-")
		if l.Attempt > 0 {
			attempt = l.Attempt
		}
		rows.add(l.At.UTC().Format("2006-01-02T15:04:05.000Z"), age, turn, cmp.Or(l.Job, "-"), attempt, l.What, l.Where,
			y.Names.In(text.FirstLine(l.Detail)))
	}
	return p.table(rows)
}
