#!/usr/bin/env bash
# Makes an authority and one server certificate of it for the brokers and the database: certificates.sh FOLDER ADDRESS
#   ca.pem        what clients need
#   kafka.pem     key and chain for brokers (user 1000)
#   server.pem, postgres.key   the same for Postgres (user 999)
#   other.pem     an authority that has signed nothing, for the test that it is not believed
set -euo pipefail
folder=$1 address=$2
mkdir -p "$folder"
cd "$folder"
[ -e ca.pem ] && exit
for ca in ca other; do
	openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=perpkeeper engine test $ca" -keyout $ca.key -out $ca.pem 2>/dev/null
done
openssl req -newkey rsa:2048 -nodes -subj "/CN=$address" -keyout server.key -out server.csr 2>/dev/null
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out server.pem \
	-extfile <(echo "subjectAltName=IP:$address") 2>/dev/null
cat server.key server.pem ca.pem >kafka.pem
cp server.key postgres.key
chown 1000 kafka.pem
chown 999 postgres.key
chmod 0600 ./*.key kafka.pem
