#!/usr/bin/env bash
# Chromium for the tests that open pages in a browser, from Debian's packages; nothing where there is one already.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "no chromium here: install it for the tests of pages in a browser (Debian: apt-get install chromium)" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
