#!/usr/bin/env bash
# Makes the draft of a release from the archives in a folder, and says which lines the Action's checksums get.
#
#   scripts/release/draft.sh FOLDER
#
# Runs in the release workflow, with GH_TOKEN, GITHUB_REPOSITORY, GITHUB_SERVER_URL and GITHUB_SHA.
set -euo pipefail
folder=${1:?the folder with the archives}

version=$(sed -n 's/^version = "\([^"]*\)"$/\1/p' Cargo.toml | head -n 1)
tag=v$version
targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-apple-darwin)

for target in "${targets[@]}"; do
  archive=goodput-$target.tar.gz
  printf '%s  %s\n' "$(sha256sum <"$folder/$archive" | cut -c1-64)" \
    "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/releases/download/$tag/$archive"
done >"$folder/checksums.txt"

gh release create "$tag" "$folder"/*.tar.gz "$folder/checksums.txt" --repo "$GITHUB_REPOSITORY" --draft --title "$tag" \
  --target "$GITHUB_SHA" --notes "See CHANGELOG.md. Built from $GITHUB_SHA; \`gh attestation verify\` says by which workflow."

{
  echo "### Next"
  echo "Commit these lines to \`scripts/action/checksums.txt\`, then publish the draft with that commit as its target:"
  echo '```'
  cat "$folder/checksums.txt"
  echo '```'
} | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
