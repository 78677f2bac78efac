#!/bin/sh
# Makes the folder of one region's secrets, with a random password for each role of its database. What is there already is left as it is.
#
#   deploy/compose/new-secrets.sh deploy/compose/secrets/tokyo
#
# The folder is closed to others on this machine; the files in it are readable, because the containers' users, to whom the engine gives single files of it,
# are none of this machine's.
set -eu
[ $# = 1 ] || { echo "usage: $0 FOLDER (such as deploy/compose/secrets/tokyo)" >&2; exit 2; }
umask 022
mkdir -p "$1/price" "$1/notify" "$1/tls" "$1/console"
chmod 700 "$1"
for role in owner statevm planner sender ops; do
  file=$1/postgres_$role
  [ -s "$file" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$file"
done
for name in chain_urls chain_headers chain_private_urls chain_private_headers kafka_password; do
  [ -e "$1/$name" ] || : >"$1/$name"
done
[ -e "$1/console/users" ] || echo "# who may sign in to the console: NAME viewer|operator HASH (keeperctl password)" >"$1/console/users"
[ -s "$1/chain_urls" ] || echo "now write the chain's endpoints into $1/chain_urls, one a line, and keys of price services into $1/price" >&2
