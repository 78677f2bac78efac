#!/bin/bash
# Whoever comes over the network without TLS is turned away.
sed -i 's/^host all all all /hostssl all all all /' "$PGDATA/pg_hba.conf"
