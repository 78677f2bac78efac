#!/bin/sh
# Pins the images of others by digest: pulls what docker-compose.yml names for a region, and writes what has come as a file to be given after it:
#
#   deploy/compose/pin-images.sh deploy/compose/tokyo.env >deploy/compose/images.yml
#   COMPOSE_FILE=docker-compose.yml:deploy/compose/images.yml docker compose --env-file deploy/compose/tokyo.env up -d
#
# Run it again to renew the list: what a tag stands for changes. Needs jq, and the registries that the images come from.
set -eu
[ $# = 1 ] || { echo "usage: $0 ENV-FILE (such as deploy/compose/tokyo.env)" >&2; exit 2; }
images=$(docker compose --env-file "$1" --profile monitoring config --format json | jq -r '
  .services | to_entries[] | select(.key | IN("kafka", "postgres", "prometheus", "alertmanager", "grafana")) | .key + " " + (.value.image | sub("@.*"; ""))')
echo "# Made by $(basename "$0") on $(date -u +%F)."
echo "services:"
echo "$images" | while read -r service image; do
  docker pull -q "$image" >/dev/null
  digest=$(docker image inspect -f '{{range .RepoDigests}}{{println .}}{{end}}' "$image" | sed -n "s|^${image%:*}@||p" | head -n 1)
  [ -n "$digest" ] || { echo "$0: $image has no digest: it was not pulled from a registry" >&2; exit 1; }
  echo "  $service: {image: \"$image@$digest\"}"
done
