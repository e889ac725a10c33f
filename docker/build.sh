#!/bin/sh
# Builds the images without Docker and without a registry: `docker/build.sh FOLDER [lakewarden] [lakewarden-spark]`.
# The base is made of Debian's packages, and each image ends as FOLDER/<name>.tar, which `docker load`, `podman load` and
# `ctr images import` take. It needs root, and buildah and mmdebstrap (apt-get install buildah mmdebstrap).
#
# With Docker and a registry this script is not needed:
#   docker build -f docker/Dockerfile --target lakewarden -t lakewarden:VERSION .
set -eu
cd "$(dirname "$0")/.."
folder=${1:?usage: docker/build.sh FOLDER [lakewarden] [lakewarden-spark]}
shift
[ $# -gt 0 ] || set -- lakewarden lakewarden-spark
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' platform/lakewarden/__init__.py)

for program in buildah mmdebstrap; do
  command -v $program >/dev/null || {
    echo "Error: $program is missing: apt-get install buildah mmdebstrap" >&2
    exit 1
  }
done

store() {
  buildah --root "$folder/store" --runroot "$folder/run" --storage-driver overlay "$@"
}

base=localhost/lakewarden-base:bookworm
if ! store inspect --type image $base >/dev/null 2>&1; then
  mmdebstrap --quiet --variant=minbase --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' bookworm "$folder/rootfs.tar"
  printf 'FROM scratch\nADD rootfs.tar /\n' >"$folder/Containerfile.base"
  store bud --quiet --isolation chroot -t $base -f "$folder/Containerfile.base" "$folder"
  rm -f "$folder/rootfs.tar" "$folder/Containerfile.base"
fi

uv=$(scripts/setup.sh uv)

for name in "$@"; do
  # what the image has of Python's packages, with their versions, as CycloneDX
  extras="--extra tracing"
  [ "$name" = lakewarden ] || extras="$extras --extra spark"
  # shellcheck disable=SC2086 none, or two words
  "$uv" export --quiet --frozen --no-dev $extras --format cyclonedx1.5 >"$folder/$name.cdx.json"
  # in Docker's format: OCI's has no health check
  store bud --quiet --isolation chroot --format docker --layers --build-arg BASE=$base --target "$name" \
    --secret "id=ca,src=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" \
    -t "localhost/$name:$version" -f docker/Dockerfile .
  rm -f "$folder/$name.tar"
  store push --quiet "localhost/$name:$version" "docker-archive:$folder/$name.tar:localhost/$name:$version"
  echo "$folder/$name.tar holds localhost/$name:$version; $folder/$name.cdx.json lists its packages"
done
