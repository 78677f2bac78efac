# Two images, static, non-root, nothing else inside:
#
#   docker build -t perpkeeper .                               the processes of a region and keeperctl
#   docker build -t perpkeeper-devnet --target devnet .        the chain of its own that the demo profile has
ARG GO_VERSION=1.26
FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY pkg pkg
COPY services services
ENV CGO_ENABLED=0
# What --version, the log and the metric perpkeeper_build_info say; the build has no repository to read it from. `make docker` gives both.
ARG VERSION=devel
ARG REVISION=
RUN mkdir /out && for b in scanner statevm planner sender console keeperctl; do \
      go build -trimpath -ldflags="-s -w -X perpkeeper/pkg/service.version=$VERSION -X perpkeeper/pkg/service.revision=$REVISION" -o /out/$b ./services/$b/cmd/$b || exit 1; \
    done

# With public development keys and an exchange of its own: no region has use for it.
FROM build AS build-devnet
COPY lab lab
ARG VERSION=devel
ARG REVISION=
RUN mkdir -p /devnet/var/devnet && \
    go build -trimpath -ldflags="-s -w -X perpkeeper/pkg/service.version=$VERSION -X perpkeeper/pkg/service.revision=$REVISION" -o /devnet/devnet ./lab/devnet/cmd/devnet

FROM scratch AS devnet
ARG VERSION=devel
ARG REVISION=
LABEL org.opencontainers.image.title=perpkeeper-devnet org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION
COPY --from=build-devnet /devnet/devnet /bin/devnet
# Its health check.
COPY --from=build /out/keeperctl /bin/keeperctl
# The devnet leaves its deployment record here, on a volume it must be able to write.
COPY --from=build-devnet --chown=65532:65532 /devnet/var/devnet /var/devnet
USER 65532:65532

FROM scratch AS keeper
ARG VERSION=devel
ARG REVISION=
LABEL org.opencontainers.image.title=perpkeeper org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out /bin
# Who may sign in to the console, on a volume too.
USER 65532:65532
