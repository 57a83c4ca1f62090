#!/usr/bin/env bash
# Makes what a release page holds, into dist/, of a clone's build:
#
#   wheel   for Python of this version and any Linux with Debian 12's glibc
#   tar     the tools and the library in a folder that may be moved
#   rpm     the same files
#   image   the same files in a small Debian, as an OCI archive; as root
#   deb     packages for Debian 12, which take libraries from it
#
#   scripts/package.sh [KIND...]    the kinds named, or all of them; some minutes
#
# Needs scripts/setup.sh package and scripts/build.sh --only all. All but the .deb
# carry the libraries that they need, as auditwheel found and checked them once, for
# the wheel. NVIDIA's are opened at run time, and are in none. Writes to stderr only.
set -euo pipefail
exec >&2
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kinds=("$@")
if [ $# = 0 ]; then
  kinds=(wheel tar rpm image deb)
  rm -rf dist
fi
version=$(sed -n 's/^project(llamac VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=llamac-$version-linux-x86_64
work=$PWD/build/packages
export PATH=$PWD/build/venv/bin:$PATH
rm -rf "$work"
mkdir -p "$work" dist
cmake --build build --target llamac llamac-run libllamac llamac_pages >/dev/null

# collect_licenses: of the shared libraries that are carried, as Debian words them,
# and of what is in the tools.
collect_licenses() {
  local to=build/packaging/licenses library package
  rm -rf "$to"
  mkdir "$to"
  cp build/packaging/copyright "$to/llamac"
  ldd build/bin/llamac build/lib/libllamac.so | sed -n 's/.*=> \(.*\) (.*/\1/p' | sort -u | while read -r library; do
    library=$(realpath "$library") # Which Debian's packages may name without /usr.
    package=$(dpkg-query --search "$library" "${library#/usr}" 2>/dev/null | sed 's/:.*//' || true)
    case $package in
    libc6 | libgcc-s1 | libstdc++6 | zlib1g) ;; # Any distribution has them.
    *) cp "/usr/share/doc/$package/copyright" "$to/$package" ;;
    esac
  done
}

# make_wheel: dist/*.whl, and its files in build/packages/wheel.
make_wheel() {
  collect_licenses
  python -m pip --disable-pip-version-check --no-input wheel . --quiet --no-deps --no-build-isolation --no-index \
    -Ccmake.define.LLAMAC_PREBUILT="$PWD/build" -Cbuild-dir=build/python-wheel --wheel-dir "$work"
  rm -f dist/llamac-*.whl
  auditwheel repair --strip --plat manylinux_2_36_x86_64 --wheel-dir dist "$work"/llamac-*.whl >"$work/auditwheel.log" 2>&1
  python -m zipfile -e dist/llamac-*.whl "$work/wheel"
}

# make_tree PREFIX: build/packages/tree, the files of an installation to PREFIX with
# the wheel's libraries; finds them from wherever bin/ and lib/ are together.
make_tree() {
  local tree=$work/tree$1 wheel=$work/wheel component
  rm -rf "$work/tree"
  for component in runtime library compiler; do
    DESTDIR=$work/tree cmake --install build --prefix "$1" --component $component >/dev/null
  done
  install -m 755 "$wheel"/llamac/bin/* "$tree/bin"
  install -m 755 "$wheel/llamac/libllamac.so."* "$tree/lib/libllamac.so.$version"
  cp -r "$wheel/llamac.libs" "$tree/lib/llamac"
  cp -r "$wheel/llamac/licenses" "$tree/share/doc/llamac"
  # shellcheck disable=SC2016 # The loader expands it.
  patchelf --set-rpath '$ORIGIN/../lib/llamac' "$tree"/bin/* "$tree/lib/libllamac.so.$version"
}

make_tar() {
  make_tree /usr/local
  tar -C "$work/tree/usr/local" --transform "s,^\.,$name," --sort=name --owner=0 --group=0 -czf "dist/$name.tar.gz" .
}

make_rpm() {
  local usr=$work/tree/usr
  make_tree /usr
  # Where Fedora's loader and zsh look.
  mkdir "$usr/lib64"
  mv "$usr"/lib/{cmake,pkgconfig,libllamac*} "$usr/lib64"
  sed -i 's,}/lib\b,&64,' "$usr/lib64/cmake/llamac/llamac-config-release.cmake" "$usr/lib64/pkgconfig/llamac.pc"
  mv "$usr/share/zsh/vendor-completions" "$usr/share/zsh/site-functions"
  cpack --config build/CPackConfig.cmake -G RPM -B "$work/rpm" \
    -D CPACK_INSTALL_CMAKE_PROJECTS= -D CPACK_INSTALLED_DIRECTORIES="$work/tree;." \
    -D CPACK_COMPONENTS_ALL= -D CPACK_STRIP_FILES=OFF >"$work/rpm.log" 2>&1
  cp "$work"/rpm/*.rpm dist
}

# make_image: what packaging/Dockerfile makes, but of Debian's own packages.
make_image() {
  local root container tool=(buildah --root "$work/containers" --runroot "$work/run" --storage-driver vfs)
  make_tree /usr/local
  container=$("${tool[@]}" from scratch)
  root=$("${tool[@]}" mount "$container")
  scripts/clean_debian.sh "$root" --include=ca-certificates # Trusted by llamac pull.
  rm -rf "$root"/var/{cache/apt/archives,lib/apt/lists}/*
  cp -r "$work/tree/usr/local" "$root/usr"
  chroot "$root" useradd --create-home llamac
  "${tool[@]}" config --user llamac --entrypoint '["llamac"]' "$container"
  rm -f "dist/$name.oci.tar"
  "${tool[@]}" commit --quiet --rm --disable-compression=false "$container" "oci-archive:dist/$name.oci.tar:llamac:$version" >/dev/null
  rm -rf "$work/containers"
}

make_deb() {
  cpack --config build/CPackConfig.cmake -G DEB -B "$work/deb" >"$work/deb.log" 2>&1
  cp "$work"/deb/*.deb dist
}

for kind in "${kinds[@]}"; do
  case $kind in
  wheel | tar | rpm | image | deb) ;;
  *)
    echo "usage: scripts/package.sh [wheel|tar|rpm|image|deb]..."
    exit 2
    ;;
  esac
done
if [ "${kinds[*]}" != deb ]; then make_wheel; fi
for kind in "${kinds[@]}"; do
  if [ "$kind" != wheel ]; then make_"$kind"; fi
done
