#!/usr/bin/env bash
# Makes a folder with the smallest Debian of this machine's release, for a chroot.
#
#   scripts/clean_debian.sh FOLDER [OPTION...]    as root, with Debian's mirror in reach
#
# The options are debootstrap's, which writes to FOLDER.log.
set -euo pipefail

# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # apt-get expands it.
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Created-By: Packages' | head -n 1)
debootstrap --variant=minbase "${@:2}" "$suite" "$1" "$mirror" >"$1.log"
