# external: deploy/compose/external.yml with three brokers that speak SASL SCRAM over TLS and a database that asks for TLS, set up by the commands of
# docs/operating.md. A broker may be missing; with two missing nothing is written, and nothing is lost.
leg_external() {
	chain_up
	keeper_gone
	checkout
	outside_up || return
	export COMPOSE_ENV_FILES=deploy/compose/tokyo.env
	local book_files=$book/deploy/compose
	cp "$book_files/region.env.example" "$book_files/tokyo.env"
	cp "$book_files/region.toml.example" "$book_files/tokyo.toml"
	check "new-secrets.sh" "$book_files/new-secrets.sh" "$book_files/secrets/tokyo"
	openssl rand -hex 24 | tr -d '\n' >"$book_files/secrets/tokyo/kafka_password"
	fill_in "$book_files" "$book_files/keys/tokyo" || return
	(cd "$book" && export PATH=$run/tools:$PATH KAFKA_BROKERS=$node:19091,$node:19092,$node:19093 POSTGRES_HOST=$node:15432 COMPOSE_ENV_FILES \
		POSTGRES_ADMIN="postgres://admin:$admin@$node:15432/postgres?sslmode=verify-full&sslrootcert=postgres-ca.pem" && export -p >"$run/shell")
	play "sh external" || return
	within 120 "every service is healthy" healthy
	within 90 "an event has become a transaction that executed" outside_executes_after 0
	topics_are_safe
	not_believed
	outside_goes_on "one broker gone: executes" kill kafka2
	outside_stops
	outside_goes_on "the brokers are back: executes" start kafka2 kafka3
	within 120 "every service is healthy again" healthy
	keeper_gone
	outside down -v >/dev/null 2>&1
	unset COMPOSE_ENV_FILES
}

outside() { HOST=$node CERTIFICATES=$run/certificates ADMIN_PASSWORD=$admin COMPOSE_ENV_FILES='' docker compose -f "$here/external/compose.yml" -p outside "$@"; }
outside_sql() { docker exec outside-postgres-1 psql -U admin -d keeper -At -c "$1"; }
outside_executes_after() { [ "$(outside_sql "select coalesce(max(block), 0) from keeper.tx_receipt where outcome = 'executed'")" -gt "$1" ]; }

outside_up() {
	admin=$(openssl rand -hex 12)
	check "certificates" "$here/external/certificates.sh" "$run/certificates" $node
	check "three brokers and a database outside" outside up -d || return
	within 180 "they are healthy" healthy outside || return
	install -m 0644 "$run/certificates/ca.pem" "$book/kafka-ca.pem"
	install -m 0644 "$run/certificates/ca.pem" "$book/postgres-ca.pem"
	# The administrator's own user, whom a cluster that is not ours would have given us.
	check "the cluster has an administrator" docker exec outside-kafka1-1 /opt/kafka/bin/kafka-configs.sh --bootstrap-server kafka1:9092 \
		--alter --entity-type users --entity-name admin --add-config "SCRAM-SHA-512=[password=$admin]"
	cat >"$book/admin.properties" <<-P
		security.protocol=SASL_SSL
		sasl.mechanism=SCRAM-SHA-512
		sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="$admin";
		ssl.truststore.type=PEM
		ssl.truststore.location=kafka-ca.pem
	P
	# The tools an administrator has on his machine; here they come from the stand-ins.
	local tool
	mkdir -p "$run/tools"
	for tool in kafka:/opt/kafka/bin/kafka-configs.sh kafka:/opt/kafka/bin/kafka-acls.sh postgres:/usr/lib/postgresql/17/bin/psql; do
		printf '#!/bin/sh\nexec docker run --rm -i --network host -v "$PWD:/w" -w /w --entrypoint %s perpkeeper-engine/%s "$@"\n' "${tool#*:}" "${tool%%:*}" \
			>"$run/tools/$(basename "$tool")"
		chmod +x "$run/tools/$(basename "$tool")"
	done
}

topics_are_safe() {
	local topics; topics=$(docker exec outside-kafka1-1 /opt/kafka/bin/kafka-topics.sh --bootstrap-server kafka1:9092 --describe 2>/dev/null | grep '^Topic: perp\.')
	equal "every topic has three copies" "5" "$(grep -c 'ReplicationFactor: 3' <<<"$topics")"
	equal "every topic wants two of them for a write" "5" "$(grep -c 'min.insync.replicas=2' <<<"$topics")"
}

# not_believed: a broker or a database whose certificate is of another authority is refused, and so is a password over a connection that proves nothing.
not_believed() {
	local tls=$book/deploy/compose/secrets/tokyo/tls what
	for what in kafka postgres; do
		cp "$tls/$what-ca.pem" "$run/ca.pem"
		cat "$run/certificates/other.pem" >"$tls/$what-ca.pem"
		if in_book docker compose run --rm -T -e PERPKEEPER_KEEPERCTL_PATIENCE=10s prepare >"$run/check.log" 2>&1; then
			fail "$what of another authority is believed"
		else
			ok "$what of another authority is refused: $(grep -o -m 1 'certificate[^"]*' "$run/check.log" | head -n 1 | cut -c1-100)"
		fi
		cat "$run/ca.pem" >"$tls/$what-ca.pem"
	done
}

in_book() { (cd "$book" && COMPOSE_FILE=docker-compose.yml:deploy/compose/external.yml "$@"); }

outside_goes_on() { # WHAT COMMAND SERVICE…
	local what=$1 from; shift
	check "$*" outside "$@"
	from=$(head_of)
	within 150 "$what" outside_executes_after "$((from + 5))"
}

outside_stops() {
	check "kill kafka3" outside kill kafka3
	within 60 "two brokers gone: the processes call it Kafka's fault" said_by_all kafka
}

# said_by_all WORD: no process is ready, and each names the condition.
said_by_all() {
	local service
	for service in scanner planner sender; do
		[[ $(in_book docker compose exec -T $service /bin/keeperctl health 2>&1) == *"$1"* ]] || return 1
	done
}
