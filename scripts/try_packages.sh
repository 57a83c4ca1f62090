#!/usr/bin/env bash
# Makes the packages and tries them in a clean Debian: each is installed, used and
# purged, and must leave nothing behind. What packaging/Dockerfile does in its last
# stages is done here, too.
#
#   scripts/try_packages.sh    as root, with Debian's mirror in reach; some minutes
#
# Needs a configured build/ with its models (scripts/setup.sh, scripts/build.sh).
# The packages stay in build/packages. Writes to stderr only.
set -euo pipefail
exec >&2
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "$(id -u)" != 0 ]; then
  echo "try_packages: expected to run as root, who may make a clean Debian"
  exit 2
fi
# Mounts of its own end with the script.
if [ "${1:-}" != --in-namespace ]; then
  exec unshare --mount "$0" --in-namespace
fi

packages=build/packages
root=$packages/root
cmake --build build --target llamac llamac-run libllamac llamac_pages >/dev/null
rm -rf "$packages"
mkdir -p "$packages"
cpack --config build/CPackConfig.cmake -G DEB -B "$packages" >/dev/null 2>&1
rm -rf "$packages/_CPack_Packages"

# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # apt-get expands it.
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Created-By: Packages' | head -n 1)
echo "try_packages: a clean $suite"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$packages/debootstrap.log"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
server=
clean_up() {
  if [ -n "$server" ]; then kill -KILL "$server"; fi
  if umount -l "$root/proc" "$root/sys"; then rm -rf --one-file-system "$root"; fi
}
trap clean_up EXIT
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
runtime=/packages/$(basename "$packages"/llamac-runtime_*.deb)
compiler=/packages/$(basename "$packages"/llamac_*.deb)
cp -L build/models/smollm2.gguf "$root/packages"
build/bin/llamac compile "$root/packages/smollm2.gguf" -o "$root/packages/smollm2.plan" -q

clean=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home
  DEBIAN_FRONTEND=noninteractive)
inside() { "${clean[@]}" "$@"; }
apt_inside() {
  inside apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$packages/apt.log" 2>&1
}
# All files but those of the package manager itself.
files_inside() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./packages -o -path ./tmp \
    -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log \) -prune \
    -o ! -name ld.so.cache -print | sort)
}
expect() { # expect WHAT TEXT PATTERN
  if ! grep -q "$3" <<<"$2"; then
    echo "try_packages: $1: expected $3, got: $2"
    exit 1
  fi
}
complete() { # complete COMMAND...: the same words as the tool that was built.
  local expected actual
  expected=$(build/bin/llamac-run "$root/packages/smollm2.plan" -p "The capital of France is" -n 8 --temp 0 -q)
  actual=$(inside "$@" -p "The capital of France is" -n 8 --temp 0 -q)
  if [ "$actual" != "$expected" ]; then
    echo "try_packages: $*: expected \"$expected\", got \"$actual\""
    exit 1
  fi
}
purge() { # purge PACKAGE...: nothing may be left.
  apt_inside purge --autoremove "$@"
  files_inside >"$packages/files_after"
  if ! diff "$packages/files_before" "$packages/files_after"; then
    echo "try_packages: $*: the files above were left or are gone"
    exit 1
  fi
}

apt_inside update
files_inside >"$packages/files_before"

echo "try_packages: llamac-runtime"
apt_inside install --no-install-recommends "$runtime"
expect llamac-runtime "$(inside dpkg -l)" llamac-runtime
if inside dpkg -l | grep -i llvm; then
  echo "try_packages: llamac-runtime: expected no LLVM"
  exit 1
fi
expect version "$(inside llamac-run --version)" "^llamac-run [0-9]"
expect doctor "$(inside llamac-run doctor)" "^runs cpu *yes"
complete llamac-run /packages/smollm2.plan
# A server, which ends well at SIGTERM.
"${clean[@]}" llamac-run serve /packages/smollm2.plan --port 0 2>"$packages/serve.log" &
server=$!
for _ in $(seq 100); do
  address=$(grep -o 'listening on http://[0-9.:]*' "$packages/serve.log" || true)
  if [ -n "$address" ]; then break; fi
  sleep 0.1
done
expect serve "$address" http
exec 5<>"/dev/tcp/127.0.0.1/${address##*:}"
printf 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&5
expect health "$(cat <&5)" "^HTTP/1.1 200"
exec 5>&-
kill -TERM "$server"
wait "$server"
server=
purge llamac-runtime

echo "try_packages: llamac"
apt_inside install --no-install-recommends "$runtime" "$compiler"
expect version "$(inside llamac --version)" "^LLVM 19"
expect doctor "$(inside llamac doctor)" "^runs cpu *yes"
complete llamac run /packages/smollm2.gguf
purge llamac llamac-runtime

rm -rf "$packages"/files_*
echo "try_packages: all well"
