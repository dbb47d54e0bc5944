#!/usr/bin/env bash
# Builds the documentation into build/docs/site: the API reference from the public headers (Doxygen), and the
# READMEs and guides as a static site (mkdocs). Warnings are errors. Nothing is downloaded once the
# tools are installed.
# usage: tools/docs.sh
# MILLRACE_DOCS_DEPS: the folder of mkdocs's virtual environment, by default .deps/docs-venv
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/docs/versions.sh
[ $# -eq 0 ] || { sed -n '2,6s/^# //p' "$0"; [[ $1 == -h || $1 == --help ]] && exit 0; exit 2; }

venv=${MILLRACE_DOCS_DEPS:-.deps/docs-venv}
out=build/docs

missing=()
for package in "${DOCS_DEBIAN_PACKAGES[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "docs: missing Debian packages; ask for: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
wanted=$(printf '%s\n' "${DOCS_PYTHON_PACKAGES[@]}")
if [ "$(cat "$venv/installed.txt" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${DOCS_PYTHON_PACKAGES[@]}"
  echo "$wanted" >"$venv/installed.txt"
fi

rm -rf "$out"
mkdir -p "$out/guides"
version=$(sed -n 's/^project(Millrace VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
python3 tools/docs/gather.py guides "$out"
MILLRACE_VERSION=$version doxygen tools/docs/Doxyfile >"$out/doxygen.log"
python3 tools/docs/gather.py reference "$out"
# Not --quiet: that would hide warnings from --strict.
"$venv/bin/mkdocs" build --strict --config-file tools/docs/mkdocs.yml --site-dir "$PWD/$out/site" \
  2>"$out/mkdocs.log" || { grep -E "WARNING|ERROR|Aborted" "$out/mkdocs.log" >&2; exit 1; }
echo "docs: $out/site/index.html, $(find "$out/site" -name '*.html' | wc -l) pages"
