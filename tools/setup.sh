#!/usr/bin/env bash
# Installs all dependencies of Millrace on a Debian 12 machine. Safe to run again: it skips what is
# already installed, which takes about a second. Versions are pinned in tools/dev/versions.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tools/dev/versions.sh"
deps=${MILLRACE_DEPS:-$root/.deps}
cuda=auto
torch=on

usage() {
  cat <<'TEXT'
usage: tools/setup.sh [--cpu | --cuda] [--no-torch] [--deps DIR]

Installs Debian packages with apt-get, and unpacks LibTorch, Arrow C++, Taskflow and Gloo's headers into .deps/.
It does not change the system's package sources.

  --cpu       install torch without its CUDA wheels (default if neither CUDA toolkit nor driver is found)
  --cuda      install torch with all its CUDA wheels (default if a CUDA toolkit or a driver is found)
  --no-torch  install only the dependencies of the torch-free half (build it with -DMILLRACE_TRAINING=OFF)
  --deps DIR  folder for the dependencies (default .deps/, or the environment variable MILLRACE_DEPS)

To use your own dependencies, skip this script and pass their locations to CMake:
  -DTorch_DIR=...    the torch folder (contains include/ and lib/)
  -DArrow_ROOT=...   a folder with Arrow's include/ and lib/
  -DTaskflow_DIR=... the folder of TaskflowConfig.cmake
  -DMILLRACE_GLOO_INCLUDE_DIR=... the folder that contains gloo/context.h
  -DCMAKE_PREFIX_PATH=... prefixes of all other dependencies
TEXT
}

while [ $# -gt 0 ]; do
  case $1 in
    --cpu) cuda=off ;;
    --cuda) cuda=on ;;
    --no-torch) torch=off ;;
    --deps)
      [ $# -gt 1 ] || { echo "setup: --deps needs a folder" >&2; exit 2; }
      deps=$2
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

mkdir -p "$deps"
deps=$(cd "$deps" && pwd)
say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

if [ "$cuda" = auto ]; then
  cuda=off
  if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || [ -e /proc/driver/nvidia/version ]; then
    cuda=on
  fi
fi

install_debian_packages() {
  local missing=() package
  for package in "${DEBIAN_PACKAGES[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && { say "Debian packages: all ${#DEBIAN_PACKAGES[@]} present"; return; }
  if [ "$(id -u)" -ne 0 ]; then
    die "Debian packages are missing, and installing them needs root. Run
  sudo apt-get install --no-install-recommends ${missing[*]}
and then tools/setup.sh again"
  fi
  say "Debian packages: installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$deps/apt.log" 2>&1 \
    || { tail -n 20 "$deps/apt.log" >&2; die "apt-get install failed (full log: $deps/apt.log)"; }
}

# Downloads one package of another suite from the first of apt's configured mirrors that has it. Uses
# a private source list and private indexes, but the system's archive keys.
install_taskflow() {
  local target=$deps/taskflow
  if [ "$(cat "$target/.version" 2>/dev/null)" = "$TASKFLOW_VERSION" ]; then
    say "Taskflow: $TASKFLOW_VERSION present"
    return
  fi
  local work=$deps/taskflow.apt mirror found=
  rm -rf "$work" "$target"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$target.new"
  local options=(
    -o "Dir::Etc::SourceList=$work/private.list" -o Dir::Etc::SourceParts=-
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=
  )
  for mirror in $(apt-get indextargets --format '$(REPO_URI)' | sort -u -r); do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $TASKFLOW_SUITE main" >"$work/private.list"
    if apt-get "${options[@]}" update >"$work/log" 2>&1 \
      && (cd "$work" && apt-get "${options[@]}" download "$TASKFLOW_PACKAGE=$TASKFLOW_VERSION*" >>"$work/log" 2>&1); then
      found=yes
      break
    fi
  done
  [ -n "$found" ] || { tail -n 5 "$work/log" >&2 || true
    die "no mirror known to apt has $TASKFLOW_PACKAGE $TASKFLOW_VERSION ($TASKFLOW_SUITE).
Unpack Taskflow $TASKFLOW_VERSION yourself and give CMake -DTaskflow_DIR=<folder of TaskflowConfig.cmake>"; }
  dpkg-deb -x "$work"/*.deb "$target.new"
  echo "$TASKFLOW_VERSION" >"$target.new/.version"
  mv "$target.new" "$target"
  rm -rf "$work"
  say "Taskflow: $TASKFLOW_VERSION unpacked"
}

# Unpacks only the headers, from the suite that apt is configured for.
install_gloo_headers() {
  local target=$deps/gloo
  if [ -e "$target/usr/include/gloo/context.h" ]; then
    say "Gloo's headers: present"
    return
  fi
  local work=$deps/gloo.apt
  rm -rf "$work" "$target"
  mkdir -p "$work"
  (cd "$work" && { apt-get download "$GLOO_PACKAGE" >log 2>&1 \
    || { apt-get update -qq >log 2>&1; apt-get download "$GLOO_PACKAGE" >>log 2>&1; }; }) \
    || { tail -n 5 "$work/log" >&2
      die "apt cannot download $GLOO_PACKAGE. Unpack it yourself and give CMake
-DMILLRACE_GLOO_INCLUDE_DIR=<the folder that contains gloo/context.h>"; }
  dpkg-deb -x "$work"/*.deb "$target.new"
  rm -rf "$target.new/usr/lib" "$target.new/usr/share"
  mv "$target.new" "$target"
  rm -rf "$work"
  say "Gloo's headers: unpacked"
}

install_python_packages() {
  local venv=$deps/venv wanted=("${PYTHON_PACKAGES[@]}") stamp python=/usr/bin/python3
  if [ "$torch" = on ]; then
    wanted+=("${PYTHON_PACKAGES_TORCH[@]}" "${PYTHON_PACKAGES_CPU[@]}")
    [ "$cuda" = on ] && wanted+=("${PYTHON_PACKAGES_CUDA[@]}")
  fi
  stamp="${wanted[*]}"
  if [ "$(cat "$venv/.installed" 2>/dev/null)" = "$stamp" ]; then
    say "LibTorch and Arrow: present (CUDA wheels: $cuda)"
    return
  fi
  [ -x "$python" ] || python=python3
  say "LibTorch and Arrow: installing ${#wanted[@]} wheels into a virtual environment (CUDA wheels: $cuda)"
  "$python" -m venv "$venv"
  # Every package is pinned in versions.sh, so pip need not resolve dependencies. --no-deps also keeps
  # the CUDA wheels out of a CPU-only set-up.
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${wanted[@]}"
  printf '%s' "$stamp" >"$venv/.installed"
}

# Links the libraries inside the wheels to stable names: .deps/libtorch and .deps/arrow look like
# ordinary prefixes, so that linked programs do not contain a Python path.
link_prefixes() {
  local site library
  site=$(echo "$deps"/venv/lib/python3*/site-packages)
  if [ -d "$site/torch" ]; then
    ln -srfn "$site/torch" "$deps/libtorch"
  fi
  mkdir -p "$deps/arrow/lib"
  ln -srfn "$site/pyarrow/include" "$deps/arrow/include"
  library=$(echo "$site"/pyarrow/libarrow.so.*)
  ln -srfn "$library" "$deps/arrow/lib/$(basename "$library")"
  ln -sfn "$(basename "$library")" "$deps/arrow/lib/libarrow.so"
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  install_debian_packages
  install_taskflow
  if [ "$torch" = on ]; then install_gloo_headers; fi
else
  say "no apt-get here. Install the equivalents of these Debian 12 packages:"
  say "  ${DEBIAN_PACKAGES[*]}"
  say "and Taskflow $TASKFLOW_VERSION (give CMake its folder with -DTaskflow_DIR=...)"
  command -v python3 >/dev/null || die "python3 with venv is needed for LibTorch and Arrow"
fi
install_python_packages
link_prefixes
say "ready in $deps"
