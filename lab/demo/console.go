package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// ConsoleUser is who may sign in at the demo's console, an admin.
const ConsoleUser = "demo"

// startConsole starts what operators see of a keeper in a browser: one keeper's is enough to look at.
func (k *Keeper) startConsole(ctx context.Context, config string) error {
	processes := make([]string, 0, len(k.Processes))
	for _, p := range k.Processes {
		processes = append(processes, p.Name+"=http://"+p.HTTP)
	}
	k.ConsolePassword = rand.Text()
	hash, err := bcrypt.GenerateFromPassword([]byte(k.ConsolePassword), bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hashing the console's password: %w", err)
	}
	line := fmt.Sprintf("%s admin %s\n", ConsoleUser, hash)
	if err := os.WriteFile(k.ConsoleUsers(), []byte(line), 0o600); err != nil {
		return fmt.Errorf("writing the console's users: %w", err)
	}
	return k.start(ctx, "console", "console", "--config", config, "--console.users", k.ConsoleUsers(),
		"--console.processes", strings.Join(processes, ","), "--console.doctor", "keeperctl,--config,"+config)
}

// ConsoleUsers is the file of who may sign in at the keeper's console.
func (k *Keeper) ConsoleUsers() string { return filepath.Join(k.dir, "console-users") }
