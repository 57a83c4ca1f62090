#!/usr/bin/env bash
# Makes the packages and tries them in a clean Debian: each is installed and used.
# The .deb are purged, and must leave nothing behind.
#
#   scripts/try_packages.sh    as root, with Debian's mirror in reach; some minutes
#
# Needs a configured build/ with its models (scripts/setup.sh exhaustive,
# scripts/build.sh). The packages stay in dist/. Writes to stderr only.
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

work=build/packages
root=$work/clean
scripts/package.sh
echo "try_packages: a clean Debian"
scripts/clean_debian.sh "$root"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
server=
clean_up() {
  if [ -n "$server" ]; then kill -KILL "$server"; fi
  if umount -l "$root/proc" "$root/sys"; then rm -rf --one-file-system "$root"; fi
}
trap clean_up EXIT
mkdir "$root/packages"
cp dist/* "$root/packages"
runtime=/packages/$(basename dist/llamac-runtime_*.deb)
compiler=/packages/$(basename dist/llamac_*.deb)
cp -L build/models/smollm2.gguf "$root/packages"
build/bin/llamac compile "$root/packages/smollm2.gguf" -o "$root/packages/smollm2.plan" -q

chroot=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home
  DEBIAN_FRONTEND=noninteractive)
clean=("${chroot[@]}")
inside() { "${clean[@]}" "$@"; }
apt_inside() {
  inside apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$work/apt.log" 2>&1
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
try_serve() { # try_serve COMMAND...: a server, which ends well at SIGTERM.
  local address
  "${clean[@]}" "$@" --port 0 2>"$work/serve.log" &
  server=$!
  for _ in $(seq 100); do
    address=$(grep -o 'listening on http://[0-9.:]*' "$work/serve.log" || true)
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
}
purge() { # purge PACKAGE...: nothing may be left.
  apt_inside purge --autoremove "$@"
  files_inside >"$work/files_after"
  if ! diff "$work/files_before" "$work/files_after"; then
    echo "try_packages: $*: the files above were left or are gone"
    exit 1
  fi
}

echo "try_packages: the tar"
mkdir "$root/elsewhere"
tar -xzf dist/llamac-*.tar.gz -C "$root/elsewhere" --strip-components=1
complete /elsewhere/bin/llamac run /packages/smollm2.gguf
complete /elsewhere/bin/llamac-run /packages/smollm2.plan
try_serve /elsewhere/bin/llamac serve /packages/smollm2.gguf
expect "the licenses" "$(cd "$root/elsewhere/share/doc/llamac/licenses" && ls)" libssl3
rm -r "$root/elsewhere"

echo "try_packages: the .rpm"
mkdir "$root/rpm"
rpm2cpio dist/llamac-*.rpm | (cd "$root/rpm" && cpio --quiet -idm)
complete /rpm/usr/bin/llamac run /packages/smollm2.gguf
complete /rpm/usr/bin/llamac-run /packages/smollm2.plan
inside /lib64/ld-linux-x86-64.so.2 --list /rpm/usr/lib64/libllamac.so.0.1 >/dev/null
rm -r "$root/rpm"

echo "try_packages: the image"
buildah() { command buildah --root "$PWD/$work/containers" --runroot "$PWD/$work/run" --storage-driver vfs "$@"; }
image=$(buildah from --quiet "oci-archive:$(echo dist/*.oci.tar)")
expect "the image" "$(buildah inspect --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "$image")" \
  "llamac \[llamac\]"
clean=(buildah run --isolation chroot --volume "$PWD/$root/packages:/packages" "$image" --)
complete llamac run /packages/smollm2.gguf
complete llamac-run /packages/smollm2.plan
expect "the user's cache" "$(inside llamac cache list)" "^plans *1 "
buildah rm "$image" >/dev/null

clean=("${chroot[@]}")
apt_inside update
files_inside >"$work/files_before"

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
try_serve llamac-run serve /packages/smollm2.plan
purge llamac-runtime

echo "try_packages: llamac"
apt_inside install --no-install-recommends "$runtime" "$compiler"
expect version "$(inside llamac --version)" "^LLVM 19"
expect doctor "$(inside llamac doctor)" "^runs cpu *yes"
complete llamac run /packages/smollm2.gguf
purge llamac llamac-runtime

echo "try_packages: the wheel"
apt_inside install --no-install-recommends python3-venv
# numpy comes from here, as no index is in reach of every clean Debian.
build/venv/bin/python -m pip --disable-pip-version-check download --quiet --no-deps --dest "$root/packages" \
  "numpy==$(build/venv/bin/python -c 'import numpy; print(numpy.__version__)')"
inside python3 -m venv /venv
inside /venv/bin/pip install --quiet --no-index --find-links /packages llamac
complete /venv/bin/llamac run /packages/smollm2.gguf
complete /venv/bin/llamac-run /packages/smollm2.plan
try_serve /venv/bin/llamac serve /packages/smollm2.gguf
expect "import llamac" "$(inside /venv/bin/python -c "
import llamac
with llamac.Model.load('/packages/smollm2.gguf') as model, llamac.Engine(model) as engine:
    print(engine.submit('The capital of France is', max_tokens=8, temperature=0).text())")" Paris

rm -rf "$work/containers" "$work"/files_*
echo "try_packages: all well"
