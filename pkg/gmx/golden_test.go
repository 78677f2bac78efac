package gmx

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/gmx/gmxtest"
)

var update = flag.Bool("update", false, "rewrite testdata/events.golden; read the difference")

// One log of every event that carries state, and what it says: testdata/events.golden, made to be
// read. The samples derive from the items' names, so a value in a wrong place shows.
func TestGoldenEvents(t *testing.T) {
	var text strings.Builder
	for _, e := range gmxtest.Events() {
		decoded, err := NewDecoder(emitter).Transaction(whole(e.Log(emitter, nil)), 1_700_000_000_000)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if len(decoded) == 0 {
			continue
		}
		fmt.Fprintln(&text, e.Name)
		for _, event := range decoded {
			line, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "  %T %s\n", event, line)
		}
	}
	golden := filepath.Join("testdata", "events.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text.String() {
		t.Errorf("events decode otherwise than %s says: go test ./pkg/gmx -run TestGoldenEvents -update, and read the "+
			"difference", golden)
	}
}
