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
RUN mkdir /out && for b in scanner statevm planner sender keeperctl devnet; do \
      go build -trimpath -ldflags="-s -w" -o /out/$b ./services/$b/cmd/$b || exit 1; \
    done && mkdir -p /out/var/devnet

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out /bin
# The devnet of the demo profile leaves its deployment record here, on a volume it must be able to write.
COPY --from=build --chown=65532:65532 /out/var/devnet /var/devnet
USER 65532:65532
