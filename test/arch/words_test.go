package arch

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// refused are words of a dialect that the project spoke once: the field's words stand in their place.
var refused = regexp.MustCompile(`(?i)\btenures?\b|take_?back\b|disown|\bcedes\b|\bpassedOver\b|foreignUse|\bOnward\b` +
	`|\bYielding\b|\bOverMs\b|reborn|rearm_ms|tx_attempt|outbox|doubtBody|leadsTo|elsewhereMost|\bparcels?\b` +
	`|surveyPrices|birthMs|birth_ms|\bbirths\b|\brebirths?\b|\bonlyFlight\b|\[\]txm\.Flight\b`)

// Names are the field's, in code, SQL, schemas and documents; the change log tells of the past.
func TestNoWordOfTheDialect(t *testing.T) {
	if planted := "the tenure of an outbox"; len(refused.FindAllString(planted, -1)) != 2 {
		t.Fatal("a planted word is not found")
	}
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "*.go", "*.sql", "*.proto", "*.md",
		"*.yml").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		if name == "CHANGELOG.md" || name == "test/arch/words_test.go" {
			continue
		}
		text, err := os.ReadFile("../../" + name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range strings.Split(string(text), "\n") {
			if word := refused.FindString(line); word != "" {
				t.Errorf("%s:%d says %q", name, number+1, word)
			}
		}
	}
}
