#!/usr/bin/env bash
# Build certgp, look at what was built, and try it as a user would: in an empty environment, in an empty directory.
#
#   scripts/release.sh            all of it
#   scripts/release.sh build      sdist and wheel in dist/, with twine's check where it is installed
#   scripts/release.sh inspect    what the wheel holds; refuses what belongs to certgp-paper
#   scripts/release.sh try        install the wheel in a clean environment and run it
#
# PYTHON (default .venv/bin/python) needs setuptools. Nothing is uploaded.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT="$PWD"
PYTHON="${PYTHON:-$ROOT/.venv/bin/python}"
DIST="${DIST:-$ROOT/dist}"
say() { printf '== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

build() {
  say "building into $DIST"
  "$PYTHON" -c 'import setuptools; assert int(setuptools.__version__.split(".")[0]) >= 77' 2>/dev/null ||
    fail "$PYTHON needs setuptools 77 or newer: $PYTHON -m pip install 'setuptools>=77'"
  rm -rf "$DIST" && mkdir -p "$DIST"
  if "$PYTHON" -P -c 'import build' 2>/dev/null; then # -P: not a folder build/ here
    "$PYTHON" -P -m build --no-isolation --outdir "$DIST" .
  else # the same two steps by hand: the wheel is made from the sdist, so that a file missing there shows here
    "$PYTHON" -c 'import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])' "$DIST" >/dev/null
    "$PYTHON" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$DIST" "$DIST"/*.tar.gz
  fi
  if "$PYTHON" -P -c 'import twine' 2>/dev/null; then
    "$PYTHON" -P -m twine check --strict "$DIST"/*
  else
    say "twine is not installed: its check is left out"
  fi
}

inspect() {
  say "what the wheel holds"
  "$PYTHON" "$ROOT/scripts/inspect_wheel.py" "$DIST"/certgp-*.whl
}

try() {
  local version expected
  expected="certgp $("$PYTHON" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')"
  WORK="$(mktemp -d)"
  trap 'rm -rf "$WORK"' EXIT
  say "a clean environment in $WORK"
  "$PYTHON" -m venv "$WORK/venv"
  "$WORK/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$DIST"/certgp-*.whl
  cd "$WORK" # so that nothing is found in the source tree
  unset PYTHONPATH
  version="$("$WORK/venv/bin/certgp" --version)"
  [ "$version" = "$expected" ] || fail "the wheel says '$version', pyproject.toml says '$expected'"
  say "$version"
  "$WORK/venv/bin/certgp" demo --out "$WORK/demo"
  "$WORK/venv/bin/certgp" reproduce figure1 >said 2>&1 && fail "certgp reproduce works without certgp-paper: the wheel holds too much"
  grep -q 'certgp-paper' said || fail "certgp reproduce does not say how to install certgp-paper: $(cat said)"
  cd "$ROOT"
  say "the wheel works"
}

case "${1:-all}" in
  build | inspect | try) "$1" ;;
  all)
    build
    inspect
    try
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
