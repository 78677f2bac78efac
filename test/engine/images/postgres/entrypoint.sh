#!/bin/bash
# What postgres:17's own entry point does, as far as the compose files rely on it.
set -euo pipefail

# file_env NAME: NAME, or what stands in the file that NAME_FILE names.
file_env() {
	local name=$1 file=$1_FILE
	if [ -n "${!file:-}" ]; then export "$name=$(<"${!file}")"; fi
	unset "$file"
}

case ${1:-} in postgres | -*) ;; *) exec "$@" ;; esac
[ "$1" = postgres ] || set -- postgres "$@"
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA"
	chmod 0700 "$PGDATA"
	chown -R postgres "$PGDATA"
	chown postgres /var/run/postgresql
	exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	file_env POSTGRES_PASSWORD
	file_env POSTGRES_USER
	file_env POSTGRES_DB
	[ -n "${POSTGRES_PASSWORD:-}" ] || { echo "Error: Database is uninitialized and superuser password is not specified." >&2; exit 1; }
	export POSTGRES_USER=${POSTGRES_USER:-postgres}
	export POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
	initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
	printf '\nhost all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
	pg_ctl -w start -o "-c listen_addresses='' -p 5432"
	sql() { PGPASSWORD=$POSTGRES_PASSWORD psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc -U "$POSTGRES_USER" "$@"; }
	[ "$POSTGRES_DB" = postgres ] || sql -d postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
	for f in /docker-entrypoint-initdb.d/*; do
		case $f in
		*.sh) if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
		*.sql) sql -d "$POSTGRES_DB" -f "$f" ;;
		esac
	done
	pg_ctl -m fast -w stop
	echo "PostgreSQL init process complete; ready for start up."
fi
shift
exec postgres -c listen_addresses='*' "$@"
