package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startConsole starts what operators see of a keeper in a browser: one keeper's is enough to look at.
func (k *Keeper) startConsole(ctx context.Context, config string) error {
	processes := make([]string, 0, len(k.Processes))
	for _, p := range k.Processes {
		processes = append(processes, p.Name+"=http://"+p.HTTP)
	}
	return k.start(ctx, "console", "console", "--config", config,
		"--console.users", filepath.Join(k.dir, "console-users"), "--console.processes", strings.Join(processes, ","),
		"--console.doctor", "keeperctl,--config,"+config)
}

// ConsoleLink is where the first user of the keeper's console is made, as the console's log says. It waits until the
// console has said so.
func (k *Keeper) ConsoleLink(ctx context.Context) (string, error) {
	p := k.Process("console")
	if p == nil {
		return "", errors.New("this keeper has no console")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, consolePatience, errors.New("the console has not said where"))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(p.file); err == nil {
			if link := linkIn(text); link != "" {
				return link, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

const consolePatience = 20 * time.Second

// linkIn finds the newest link in a log.
func linkIn(log []byte) (link string) {
	for line := range bytes.Lines(log) {
		var said struct {
			Link string `json:"link"`
		}
		if json.Unmarshal(line, &said) == nil && said.Link != "" {
			link = said.Link
		}
	}
	return link
}
