package keeperctl

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed region
var regionFiles embed.FS

var regionTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"list": addresses, "join": func(all []string) string { return strings.Join(all, ",") },
	"quoted": func(text string) string { return `"` + strings.ReplaceAll(text, ",", `", "`) + `"` },
}).ParseFS(regionFiles, "region/*"))

// database is where a region without Docker has its Postgres.
type database struct {
	at       url.URL // without a user
	owner    string
	password string
}

func databaseOf(text string) (d database, err error) {
	at, err := url.Parse(text)
	if err != nil || at.User == nil || at.Scheme != "postgres" {
		return d, errors.New("want postgres://OWNER:PASSWORD@HOST:PORT/NAME?sslmode=…") // the library's error quotes it
	}
	d.owner = at.User.Username()
	d.password, _ = at.User.Password()
	at.User, d.at = nil, *at
	return d, nil
}

// As is the address for one of the database's users.
func (d database) As(user string) string {
	d.at.User = url.User(user)
	return d.at.String()
}

// Owner is the address for the database's owner.
func (d database) Owner() string { return d.As(d.owner) }

// HasPassword reports whether the owner has one.
func (d database) HasPassword() bool { return d.password != "" }

// bareProcess is what the environment of one process is written from.
type bareProcess struct {
	*region
	Name, Role string // the role in the database, none for scanner
	Port       int
}

var bareProcesses = []bareProcess{
	{Name: "scanner", Port: 8081}, {Name: "statevm", Role: "statevm", Port: 8082},
	{Name: "planner", Role: "planner", Port: 8083}, {Name: "sender", Role: "sender", Port: 8084},
	{Name: "console", Role: "ops", Port: 8090}, {Name: "keeperctl", Role: "ops"}, {Name: "prepare", Role: "owner"},
}

// Path is how Compose is told a path: from the folder of docker-compose.yml.
func (r *region) Path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return "./" + filepath.ToSlash(path)
}

// Processes are where processes serve their pages, all but the one that is told.
func (r *region) Processes(told string) string {
	var all []string
	for _, p := range bareProcesses {
		if p.Port > 0 && p.Name != told {
			all = append(all, fmt.Sprintf("%s=http://127.0.0.1:%d", p.Name, p.Port))
		}
	}
	return strings.Join(all, ",")
}

// files are what a region consists of, by their paths: the template of each and what it is filled with.
func (r *region) files() (paths []string, write map[string]func(io.Writer) error) {
	write = map[string]func(io.Writer) error{}
	add := func(path, template string, with any) {
		paths = append(paths, path)
		write[path] = func(w io.Writer) error { return regionTemplates.ExecuteTemplate(w, template, with) }
	}
	if !r.Bare {
		add(filepath.Join(r.Dir, r.Name+".env"), "compose.tmpl", r)
		add(filepath.Join(r.Dir, r.Name+".toml"), "region.tmpl", r)
		return paths, write
	}
	add(filepath.Join(r.Dir, "region.toml"), "region.tmpl", r)
	for _, p := range bareProcesses {
		p.region = r
		add(filepath.Join(r.Dir, p.Name+".env"), "process.tmpl", p)
	}
	return paths, write
}

// secretFiles are what deploy/compose/new-secrets.sh makes, and the endpoints.
func (r *region) secretFiles() map[string]string {
	files := map[string]string{
		"chain_headers": "", "chain_private_urls": "", "chain_private_headers": "", "chain_urls": "",
		"kafka_password": "",
		"console/users":  "# who may sign in to the console: NAME viewer|operator HASH (keeperctl password)\n",
	}
	for _, at := range r.Endpoints {
		files["chain_urls"] += at.Reveal() + "\n"
	}
	for _, role := range []string{"owner", "statevm", "planner", "sender", "ops"} {
		random := make([]byte, 24)
		_, _ = rand.Read(random) // never fails
		files["postgres_"+role] = hex.EncodeToString(random)
	}
	if r.Bare {
		files["postgres_owner"] = r.Postgres.password
	}
	return files
}

// refuseExisting keeps init from a region that there is.
func (r *region) refuseExisting() error {
	paths, _ := r.files()
	for name := range r.secretFiles() {
		paths = append(paths, filepath.Join(r.Secrets, name))
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is there already, and nothing is overwritten (remove the region's files, or name "+
				"another one)", path)
		}
	}
	return nil
}

// write puts the files down, which are not there yet, and says what comes next.
func (r *region) write(out io.Writer) error {
	for _, folder := range []string{"price", "notify", "tls", "console"} {
		if err := os.MkdirAll(filepath.Join(r.Secrets, folder), 0o755); err != nil { //nolint:gosec // see below
			return err
		}
	}
	// Closed to others by the folder: the files are read by containers, whose users are none of this machine's.
	if err := os.Chmod(r.Secrets, 0o700); err != nil { //nolint:gosec // a folder
		return err
	}
	for name, text := range r.secretFiles() {
		if err := writeNew(filepath.Join(r.Secrets, name), []byte(text)); err != nil {
			return err
		}
	}
	paths, write := r.files()
	for _, path := range paths {
		var text bytes.Buffer
		if err := write[path](&text); err != nil {
			return err
		}
		if err := writeNew(path, text.Bytes()); err != nil {
			return err
		}
	}
	return regionTemplates.ExecuteTemplate(out, "next.tmpl", r)
}

// writeNew writes a file that is not there yet.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // its folder is closed
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
