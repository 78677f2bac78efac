package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// At builds the keeper's programs as they were at a commit of this repository, and returns the folder they are in and
// the commit's hash. The devnet, which stands for what is not ours, is of today.
func At(ctx context.Context, commit string) (folder, hash string, err error) {
	if hash, err = git(ctx, "rev-parse", "--verify", commit+"^{commit}"); err != nil {
		return "", "", err
	}
	// A folder of the same name each time: the compiler's cache knows packages by where they are.
	tree := filepath.Join(root(), ".cache", "trees", hash[:12])
	folder = filepath.Join(root(), ".cache", "programs", "at-"+hash[:12])
	if _, err := git(ctx, "worktree", "add", "--force", "--detach", tree, hash); err != nil {
		return "", "", err
	}
	err = buildInto(tree, folder, ours(), inherited()...)
	_, removing := git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
	if err = errors.Join(err, removing); err == nil {
		err = buildInto(root(), folder, []string{chain}, "-race=false")
	}
	return folder, hash, err
}

// Changed builds the keeper's programs with another content of some files, which are named from the module's root, and
// returns the folder they are in. The kind names them among others that are built.
func Changed(kind string, files map[string][]byte) (folder string, err error) {
	dir, err := os.MkdirTemp("", "perpkeeper-overlay-")
	if err != nil {
		return "", fmt.Errorf("making a folder for changed files: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	replace := map[string]string{}
	for name, content := range files {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root(), name)] = path
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", fmt.Errorf("writing a changed file: %w", err)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("writing the list of changed files: %w", err)
	}
	folder, err = build(kind, ours(), append(inherited(), "-overlay="+overlay)...)
	if err == nil {
		err = buildInto(root(), folder, []string{chain}, "-race=false")
	}
	return folder, err
}

// Source reads a file of the module.
func Source(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(root(), filepath.Clean(name)))
}

// ours are the programs of the keeper.
func ours() []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == chain })
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}
