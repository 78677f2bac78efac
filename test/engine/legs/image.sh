# image: every image of docker-compose.yml, the keeper's by Dockerfile as it is.
leg_image() {
	made "the stand-ins are made" postgres kafka prometheus alertmanager grafana
	made "docker build" dockerfile
	image_is_bare
}

# prebuilt: what region, scale and kill need, the keeper's binaries compiled outside Docker.
leg_prebuilt() {
	made "the stand-ins are made" postgres kafka
	made "perpkeeper:latest is made of binaries built here" keeper
	image_is_bare
}

# made WHAT NAME…: ends the run if an image cannot be made, as nothing can be shown without it. A machine that is too slow for the run's time is none for it.
made() {
	local what=$1 began=$SECONDS status=0; shift
	timeout $((deadline - SECONDS - 300)) "$here/images.sh" "$@" || status=$?
	[ $status != 124 ] || unable "$what: too slow"
	[ $status != $UNABLE ] || exit $UNABLE
	[ $status = 0 ] || { fail "$what"; summary; exit 1; }
	ok "$what ($((SECONDS - began)) s)"
}

image_is_bare() {
	equal "the image runs as nobody" 65532:65532 "$(docker image inspect -f '{{.Config.User}}' perpkeeper:latest)"
	equal "no region's image has a devnet, the demo's has" "0 1" "$(holds_devnet perpkeeper) $(holds_devnet perpkeeper-devnet)"
	check "every program of the image says its version" docker run --rm --network none perpkeeper /bin/scanner --version
}

# holds_devnet IMAGE: how many files of that name it has.
holds_devnet() {
	local made; made=$(docker create "$1" /bin/none)
	docker export "$made" | tar -t | grep -c '^bin/devnet$' || true # which says so by its exit status as well
	docker rm "$made" >/dev/null
}
