# keeperctl beside pg_dump and pg_restore of the database's own version. docker-compose.yml gives both images.
ARG KEEPER
ARG POSTGRES
FROM ${KEEPER} AS keeper
FROM ${POSTGRES}
COPY --from=keeper /bin/keeperctl /bin/keeperctl
