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

// Every kind of row must be able to fail, and lets the lawful pass.
func TestPlantedViolationsAreFound(t *testing.T) {
	for _, plant := range []struct {
		file, imports string
		lawful        bool
	}{
		{"services/scanner/head.go", "perpkeeper/pkg/pg", false},
		{"services/scanner/head.go", "perpkeeper/services/statevm", false},
		{"services/scanner/head.go", "perpkeeper/pkg/evm", true},
		{"services/scanner/cmd/scanner/main.go", "perpkeeper/services/scanner", true},
		{"services/statevm/apply.go", "perpkeeper/pkg/evm", false},
		{"services/statevm/apply.go", "perpkeeper/pkg/pg/txstore", false},
		{"services/statevm/apply.go", "perpkeeper/pkg/pg", true},
		{"services/statevm/run.go", "database/sql", false},
		{"services/planner/sweep.go", "perpkeeper/pkg/evm", false},
		{"services/planner/planner.go", "perpkeeper/pkg/pg/txstore", false},
		{"services/planner/snapshot_test.go", "github.com/jackc/pgx/v5", false},
		{"services/sender/cmd/sender/main.go", "perpkeeper/lab/embedded/broker", false},
		{"services/sender/wiring.go", "perpkeeper/lab/simulator", false},
		{"services/keeperctl/simulate.go", "perpkeeper/test/programs", false},
		{"lab/devnet/devnet.go", "perpkeeper/pkg/pg", false},
		{"lab/demo/demo.go", "perpkeeper/lab/devnet", false},
		{"pkg/perp/apply.go", "perpkeeper/pkg/gmx", false},
		{"pkg/perp/apply_test.go", "perpkeeper/pkg/gmx", true},
		{"pkg/perp/apply_test.go", "github.com/stretchr/testify/require", false},
		{"pkg/chain/chain.go", "perpkeeper/pkg/perp", false},
		{"pkg/txmgr/lease/lease.go", "perpkeeper/pkg/pg", false},
		{"pkg/txmgr/txm/txm.go", "github.com/ethereum/go-ethereum/core/types", false},
		{"pkg/kafka/wire/record.go", "perpkeeper/pkg/kafka/bus", false},
		{"pkg/kafka/bus/client.go", "github.com/segmentio/kafka-go", true},
		{"pkg/evm/client.go", "github.com/segmentio/kafka-go", false},
		{"pkg/pg/partition.go", "perpkeeper/pkg/pg/txstore", false},
		{"pkg/pg/txstore/lease.go", "perpkeeper/pkg/txmgr/lease", true},
		{"pkg/unheardof/x.go", "perpkeeper/pkg/chain", false},
		{"test/e2e/e2e_test.go", "perpkeeper/services/sender", true},
	} {
		tree := fstest.MapFS{plant.file: {Data: []byte("package x\n\nimport _ \"" + plant.imports + "\"\n")}}
		got, err := house.Check(tree)
		if err != nil {
			t.Fatal(err)
		}
		found := len(got) == 1 && got[0].File == plant.file && got[0].Import == plant.imports
		if found == plant.lawful {
			t.Errorf("%s importing %s: found %v", plant.file, plant.imports, got)
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
