#!/bin/sh
# Creates .venv with exactly the versions of uv.lock. Called by make; does nothing when .venv is up to date.
# `setup.sh uv` prints the path of the uv that it uses.
# PYTHON names the interpreter to use; LAKEWARDEN_CACHE the folder for downloads (default: ~/.cache/lakewarden).
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
stamp=.venv/.synced
[ "${1:-}" = uv ] || [ ! -e "$stamp" ] || [ uv.lock -nt "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || exit 0

fail() {
  printf 'Error: %s\n' "$*" >&2
  exit 1
}

supported() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
  for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
    if path=$(command -v "$candidate" 2>/dev/null) && supported "$path"; then
      printf '%s\n' "$path"
      return
    fi
  done
  return 1
}

find_uv() {
  if command -v uv >/dev/null 2>&1 && [ "$(uv --version | cut -d' ' -f2)" = "$UV_VERSION" ]; then
    command -v uv
    return
  fi
  tool=${LAKEWARDEN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lakewarden}/uv-$UV_VERSION
  if [ ! -x "$tool/bin/uv" ]; then
    rm -rf "$tool"
    "$1" -m venv "$tool" >&2 ||
      fail "$1 cannot create virtual environments: install its venv module (on Debian and Ubuntu: python3-venv)"
    "$tool/bin/python" -m pip install --quiet --retries 2 --disable-pip-version-check "uv==$UV_VERSION" 2>"$tool/log" || {
      tail -n 1 "$tool/log" >&2
      rm -rf "$tool"
      fail "uv $UV_VERSION could not be downloaded. The first start needs a connection to a Python package index" \
        "(PIP_INDEX_URL names another than the default); later ones do not"
    }
  fi
  printf '%s\n' "$tool/bin/uv"
}

python=$(find_python) || fail "no Python 3.11, 3.12 or 3.13 was found; install one, or name it: make PYTHON=/path/to/python"
uv=$(find_uv "$python")
if [ "${1:-}" = uv ]; then
  printf '%s\n' "$uv"
  exit 0
fi
printf 'Preparing the environment (downloads happen once) ...\n' >&2
UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true "$uv" sync --frozen --quiet --python "$python" >&2 ||
  fail "the packages of uv.lock could not be installed. The first start needs a connection to a Python package index" \
    "(UV_DEFAULT_INDEX names another than the default) and about 2 GB of disk; then run the same command again"
touch "$stamp"
