#!/usr/bin/env bash
# Downloads the programs of a released version and holds them against the Action's checksums.
#
#   scripts/release/verify.sh VERSION
set -euo pipefail
version=${1:?the version, without v}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

found=0
while read -r sum url; do
  case $url in
  */"v$version"/goodput-*.tar.gz) ;;
  *) continue ;;
  esac
  curl --proto =https --proto-redir =https --tlsv1.2 --fail --silent --show-error --location --retry 5 --output "$scratch/archive" -- "$url"
  echo "$sum  $scratch/archive" | sha256sum --check --quiet
  echo "as listed: $url"
  found=$((found + 1))
done <scripts/action/checksums.txt

if [ "$found" -ne 4 ]; then
  echo "scripts/action/checksums.txt lists $found programs of $version, and a release has 4: this commit cannot be pinned as the Action" >&2
  exit 1
fi
