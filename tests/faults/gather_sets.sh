#!/usr/bin/env bash
# Downloads public media for decode_files: one folder per package, unpacked but not installed.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: gather_sets.sh FOLDER

Downloads Debian packages and Python source packages that contain media, many of them damaged on
purpose, and unpacks each into its own folder under FOLDER. Safe to run again: existing folders are
kept. Then run:

  build/asan/bin/decode_files --list FOLDER/*

Add other media by hand: every folder under FOLDER is a set. README.md beside this script lists the
sets that have been tested.
TEXT
}

case ${1:-} in
  '' | -h | --help) usage; exit 0 ;;
esac
folder=$1
python=${PYTHON:-python3}

DEBIAN_SETS=(gdk-pixbuf-tests assimp-testmodels forensics-samples-files oxygen-icon-theme tuxpaint-data)
PYTHON_SETS=(mutagen==1.48.1 pyglet==2.1.19)

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in "${DEBIAN_SETS[@]}"; do
  [ -d "$folder/$package" ] && continue
  rm -rf "${work:?}"/*
  (cd "$work" && apt-get -qq download "$package")
  dpkg-deb --extract "$work"/*.deb "$work/files"
  mv "$work/files" "$folder/$package"
done

for package in "${PYTHON_SETS[@]}"; do
  name=${package%%==*}
  [ -d "$folder/$name" ] && continue
  rm -rf "${work:?}"/*
  "$python" -m pip download --quiet --no-deps --no-binary :all: --dest "$work" "$package"
  mkdir "$work/files"
  tar -xf "$work/$name"*.tar.gz -C "$work/files"
  mv "$work/files" "$folder/$name"
done

for set in "$folder"/*/; do
  printf '%s %s files\n' "$(basename "$set")" "$(find "$set" -type f | wc -l)"
done
