# One image with every binary of the keeper: static, non-root, nothing else inside.
ARG GO_VERSION=1.26
FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY pkg pkg
COPY services services
COPY test/sim test/sim
ENV CGO_ENABLED=0
# What --version, the log and the metric perpkeeper_build_info say; the build has no repository to read it from. `make docker` gives both.
ARG VERSION=devel
ARG REVISION=
RUN mkdir /out && for b in scanner statevm planner sender console keeperctl devnet; do \
      go build -trimpath -ldflags="-s -w -X perpkeeper/pkg/service.version=$VERSION -X perpkeeper/pkg/service.revision=$REVISION" -o /out/$b ./services/$b/cmd/$b || exit 1; \
    done && mkdir -p /out/var/devnet /out/var/snapshots /out/var/console

FROM scratch
ARG VERSION=devel
ARG REVISION=
LABEL org.opencontainers.image.title=perpkeeper org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out /bin
# The devnet of the demo profile leaves its deployment record here, on a volume it must be able to write.
COPY --from=build --chown=65532:65532 /out/var/devnet /var/devnet
# Snapshots of the state, where they are kept on a volume of this machine.
COPY --from=build --chown=65532:65532 /out/var/snapshots /var/snapshots
# Who may sign in to the console, on a volume too.
COPY --from=build --chown=65532:65532 /out/var/console /var/console
USER 65532:65532
