#!/usr/bin/env bash
# Makes a small folder of sample media: photos, clips, sounds and meshes from Debian packages, and GIFs
# with captions, cut from the clips. Packages are downloaded once (50 MB) and unpacked, not installed.
# Without a network, simple media are generated instead.
# usage: tools/samples/sample_media.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$root/tools/dev/versions.sh"
[ $# -eq 1 ] || { echo "usage: tools/samples/sample_media.sh FOLDER" >&2; exit 2; }
out=$1
store=${MILLRACE_DEPS:-$root/.deps}/sample-media
mkdir -p "$store" "$out"/{pictures,clips,gifs,sounds,meshes}

fetch() { # fetch PACKAGE: unpacks the package into $store/PACKAGE
  [ -e "$store/$1/.done" ] && return
  local work=$store/$1.deb
  rm -rf "$work" && mkdir -p "$work"
  (cd "$work" && apt-get download -qq "$1" >/dev/null 2>&1) || { rm -rf "$work"; return 1; }
  dpkg -x "$work"/*.deb "$store/$1"
  rm -rf "$work"
  touch "$store/$1/.done"
}

copy() { # copy KIND LIMIT PATTERN PACKAGE: copies the first LIMIT files of the package, sorted by name
  local kind=$1 limit=$2 pattern=$3 package=$4
  find "$store/$package" -type f -iname "$pattern" -size +8k -size -4000k | sort | head -n "$limit" \
    | while IFS= read -r file; do cp -n "$file" "$out/$kind/"; done
}

generate() { # media that need no network
  local i
  echo "sample media: no packages can be downloaded; generating simple media instead"
  for i in $(seq 1 24); do
    ffmpeg -nostdin -v error -y -f lavfi -i "mandelbrot=size=320x240:start_scale=0.$i" -frames:v 1 "$out/pictures/picture$i.jpg"
  done
  for i in 1 2 3 4; do
    ffmpeg -nostdin -v error -y -f lavfi -i "testsrc2=size=320x240:rate=25:duration=3" -vf "hue=h=$((i * 80))" \
      -pix_fmt yuv420p "$out/clips/clip$i.mp4"
    ffmpeg -nostdin -v error -y -f lavfi -i "sine=frequency=$((i * 220)):duration=2" "$out/sounds/tone$i.flac"
    python3 - "$out/meshes/fan$i.obj" "$((i * 8))" <<'PYTHON'
import math, sys
n = int(sys.argv[2])
with open(sys.argv[1], "w") as out:
    print("v 0 1 0", file=out)
    for i in range(n):
        print("v", math.cos(6.283 * i / n), 0, math.sin(6.283 * i / n), file=out)
    for i in range(n):
        print("f 1", 2 + i, 2 + (i + 1) % n, file=out)
PYTHON
  done
}

if [ ! -e "$out/.done" ]; then
  complete=yes
  for package in "${SAMPLE_PACKAGES[@]}"; do
    fetch "$package" || { complete=; break; }
  done
  if [ -n "$complete" ]; then
    copy pictures 40 '*.jpg' kphotoalbum
    copy clips 4 '*.mp4' python3-imageio
    copy clips 8 '*.mp4' python3-mecavideo
    copy clips 8 '*.avi' python3-mecavideo
    copy clips 1 '*.avi' kphotoalbum
    copy sounds 40 '*.flac' sonic-pi-samples
    copy meshes 40 '*.stl' dart-doc
  else
    generate
  fi
  for clip in "$out"/clips/*; do
    name=$(basename "${clip%.*}")
    ffmpeg -nostdin -v error -y -i "$clip" -t 2 -vf "fps=10,scale=96:-2" "$out/gifs/$name.gif"
    echo "a clip called $name" | tr '_-' '  ' >"$out/gifs/$name.txt"
  done
  # Two damaged files, as in every real collection: one that is no picture and one that is truncated.
  echo "not a picture" >"$out/pictures/broken.jpg"
  first=$(find "$out/pictures" -name '*.jpg' -size +8k | sort | head -n 1)
  head -c 4000 "$first" >"$out/pictures/truncated.jpg"
  touch "$out/.done"
fi
for kind in pictures clips gifs sounds meshes; do
  printf '%-9s %3d files %6d kB\n' $kind "$(find "$out/$kind" -type f | wc -l)" "$(du -sk "$out/$kind" | cut -f1)"
done
