package compose

import (
	"maps"
	"strings"
	"testing"
)

var externalFiles = []string{"docker-compose.yml", "deploy/compose/external.yml"}

// external is a filled-in region whose Kafka and Postgres are elsewhere.
func external(t *testing.T) map[string]string {
	env := filled(t)
	maps.Copy(env, map[string]string{
		"KAFKA_BROKERS": "b1.example.org:9094,b2.example.org:9094,b3.example.org:9094", "KAFKA_TLS": "true",
		"KAFKA_SASL_MECHANISM": "scram-sha-512",
		"KAFKA_USER":           "keeper",
		"POSTGRES_AT":          "db.example.org:5432/keeper?sslmode=verify-full&sslrootcert=/etc/perpkeeper/tls/postgres-ca.pem",
	})
	return env
}

// With external.yml there is no broker and no database of one's own, nobody waits for one, and every process is told of
// the others.
func TestExternalStores(t *testing.T) {
	project, err := loadAs(t, "keeper-test", externalFiles, external(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"kafka", "postgres"} {
		if _, there := project.Services[gone]; there {
			t.Errorf("%s is still there", gone)
		}
	}
	for name, service := range project.Services {
		for needed := range service.DependsOn {
			if needed == "kafka" || needed == "postgres" {
				t.Errorf("%s waits for %s", name, needed)
			}
		}
		if brokers := service.Environment["PERPKEEPER_KAFKA_BROKERS"]; brokers != nil &&
			!strings.HasPrefix(*brokers, "b1.example.org:9094,") {
			t.Errorf("%s asks the brokers %s", name, *brokers)
		}
		if url := service.Environment["PERPKEEPER_POSTGRES_URL"]; url != nil &&
			!strings.Contains(*url, "@db.example.org:5432/keeper?sslmode=verify-full&") {
			t.Errorf("%s asks the database %s", name, *url)
		}
	}
	prepare := project.Services["prepare"]
	if copies := prepare.Environment["PERPKEEPER_KEEPERCTL_REPLICATION"]; copies == nil || *copies != "3" {
		t.Error("prepare does not ask for three copies")
	}
}

// Forgetting where they are is one line, and no attempt to find a container called kafka.
func TestExternalStoresAreNamed(t *testing.T) {
	for _, name := range []string{"KAFKA_BROKERS", "POSTGRES_AT"} {
		env := external(t)
		delete(env, name)
		if _, err := loadAs(t, "keeper-test", externalFiles, env); err == nil ||
			!strings.Contains(err.Error(), "set "+name+" in the env file") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
