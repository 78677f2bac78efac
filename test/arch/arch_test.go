package arch

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

// PIPE-1: the services import nothing of each other, and imports point one way.
func TestHouseKeepsItsTable(t *testing.T) {
	violations, err := house.Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// Every row of the table must be able to fail.
func TestPlantedViolationsAreFound(t *testing.T) {
	for _, plant := range []struct{ file, imports string }{
		{"services/scanner/head.go", "perpkeeper/pkg/pg"},
		{"services/scanner/head.go", "perpkeeper/services/statevm"},
		{"services/statevm/apply.go", "perpkeeper/pkg/evm"},
		{"services/planner/sweep.go", "perpkeeper/pkg/evm"},
		{"services/sender/cmd/sender/main.go", "perpkeeper/lab/embedded/broker"},
		{"lab/devnet/devnet.go", "perpkeeper/pkg/pg"},
		{"pkg/perp/apply.go", "perpkeeper/pkg/gmx"},
		{"pkg/chain/chain.go", "perpkeeper/pkg/perp"},
		{"pkg/job/job.go", "perpkeeper/pkg/kafka/wire"},
		{"pkg/txmgr/lease/lease.go", "perpkeeper/pkg/pg"},
		{"pkg/txmgr/txm/txm.go", "github.com/ethereum/go-ethereum/core/types"},
		{"pkg/gmx/decode.go", "perpkeeper/pkg/evm"},
		{"pkg/kafka/wire/record.go", "perpkeeper/pkg/kafka/bus"},
		{"pkg/evm/client.go", "github.com/segmentio/kafka-go"},
		{"services/planner/snapshot.go", "github.com/jackc/pgx/v5"},
		{"services/planner/snapshot_test.go", "github.com/jackc/pgx/v5"},
		{"services/statevm/run.go", "database/sql"},
		{"pkg/kafka/bus/config.go", "github.com/spf13/viper"},
		{"pkg/perp/apply_test.go", "github.com/stretchr/testify/require"},
		{"pkg/unheardof/x.go", "perpkeeper/pkg/chain"},
		{"lab/demo/demo.go", "perpkeeper/lab/devnet"},
		{"lab/recordings/fold.go", "perpkeeper/pkg/pg"},
		{"services/keeperctl/simulate.go", "perpkeeper/test/programs"},
		{"services/sender/wiring.go", "perpkeeper/lab/simulator"},
		{"services/keeperctl/config.go", "perpkeeper/lab/simulator"},
		{"pkg/pg/store.go", "perpkeeper/pkg/kafka/bus"},
		{"pkg/pg/partition.go", "perpkeeper/pkg/pg/txstore"},
		{"services/statevm/apply.go", "perpkeeper/pkg/pg/txstore"},
		{"services/planner/planner.go", "perpkeeper/pkg/pg/txstore"},
	} {
		got, err := house.Check(tree(plant.file, plant.imports))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].File != plant.file || got[0].Import != plant.imports {
			t.Errorf("%s importing %s: found %v", plant.file, plant.imports, got)
		}
	}
}

func TestLawfulImportsPass(t *testing.T) {
	for _, lawful := range []struct{ file, imports string }{
		{"services/scanner/head.go", "perpkeeper/pkg/evm"},
		{"services/scanner/cmd/scanner/main.go", "perpkeeper/services/scanner"},
		{"services/statevm/apply.go", "perpkeeper/pkg/pg"},
		{"pkg/pg/migrate.go", "github.com/pressly/goose/v3"},
		{"pkg/kafka/bus/client.go", "github.com/segmentio/kafka-go"},
		{"pkg/perp/apply_test.go", "perpkeeper/pkg/gmx"},
		{"pkg/pg/txstore/lease.go", "perpkeeper/pkg/txmgr/lease"},
		{"test/e2e/e2e_test.go", "perpkeeper/services/sender"},
	} {
		if got, err := house.Check(tree(lawful.file, lawful.imports)); err != nil || len(got) != 0 {
			t.Errorf("%s importing %s: %v, %v", lawful.file, lawful.imports, got, err)
		}
	}
}

// A row that matches no folder is a typing mistake that would let a room go unwatched.
func TestEveryRoomOfTheModuleHasOneRow(t *testing.T) {
	paths := make([]string, len(house.Rooms))
	for i, r := range house.Rooms {
		paths[i] = r.Path
	}
	slices.Sort(paths)
	if len(slices.Compact(paths)) != len(house.Rooms) {
		t.Error("a room has two rows")
	}
}

func tree(file, imports string) fstest.MapFS {
	return fstest.MapFS{file: {Data: []byte("package x\n\nimport _ \"" + imports + "\"\n")}}
}
