#!/usr/bin/env python3
"""Gathers what the documentation is made of.

usage: gather.py guides OUT      READMEs and guides into OUT/guides; public headers as Doxygen's input
       gather.py reference OUT   after Doxygen: OUT/guides/reference.md, a table of all headers

Guides keep their folders, so that links between them hold. What mkdocs does not take (hidden folders,
links to sources) is rewritten here.
"""
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as xml

ROOMS = ("pipeline", "decoders", "datasets", "training", "tools", "tests")
HIDDEN = {".github": "project"}  # mkdocs leaves hidden folders out


def guides():
    yield pathlib.Path("README.md")
    yield from sorted(pathlib.Path(".github").glob("*.md"))
    for room in ROOMS:
        for path in sorted(pathlib.Path(room).rglob("*.md")):
            if "fixtures" not in path.parts:
                yield path


def place_of(path):
    return pathlib.Path(*(HIDDEN.get(part, part) for part in path.parts))


def copied(guide, known, out):
    """The text of a guide. Links to other guides and to pictures hold; others become plain text."""
    def link(match):
        shown, target = match[1], match[2]
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        file, _, anchor = target.partition("#")
        to = (guide.parent / file).resolve().relative_to(pathlib.Path.cwd())
        if to.is_dir():
            to = to / "README.md"
        if to.suffix == ".png":
            (out / place_of(to)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(to, out / place_of(to))
        elif to not in known:
            return shown if not match[0].startswith("!") else match[0]
        steps = len(place_of(guide).parts) - 1
        return f"[{shown}]({'../' * steps}{place_of(to).as_posix()}{'#' + anchor if anchor else ''})"

    text = guide.read_text()
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, text)


def public_headers():
    """Headers that a CMakeLists.txt of their room lists; private ones are not mentioned there."""
    for room in ROOMS[:4]:
        listed = set()
        for lists in pathlib.Path(room).rglob("CMakeLists.txt"):
            listed |= set(re.findall(r"[\w/]+\.h\b", lists.read_text()))
        names = {name.split("/")[-1] for name in listed} | {f"{room}.h"}
        yield from (path for path in sorted(pathlib.Path(room).rglob("*.h")) if path.name in names)


def purpose_of(header):
    """The first sentence of a header's leading comment."""
    leading = []
    for line in header.read_text().splitlines():
        if not line.startswith("// "):
            break
        leading.append(line[3:])
    first = re.split(r"(?<=[.;]) ", " ".join(leading), maxsplit=1)[0].rstrip(".;")
    return first.replace("|", "\\|").replace("<", "&lt;")


def reference_page(out):
    """The door to the API reference: every public header with its first sentence."""
    pages = {}
    for compound in xml.parse(out / "tags.xml").iter("compound"):
        if compound.get("kind") == "file" and compound.find("path") is not None:
            name = compound.findtext("path") + compound.findtext("name")
            pages[name.split("include/millrace/")[-1]] = compound.findtext("filename")
    lines = ["# API reference", "", "Public headers, and what they are for. See also [all classes](api/annotated.html)"]
    lines += ["and [all files](api/files.html).", ""]
    for room in ROOMS[:4]:
        lines += [f"## {room}", "", "| `#include <millrace/...>` | |", "|---|---|"]
        for header in public_headers():
            if header.parts[0] == room:
                name = include_name(header)
                lines.append(f"| [`{name}`](api/{pages[name]}) | {purpose_of(header)} |")
        lines.append("")
    return "\n".join(lines)


def include_name(header):
    """pipeline/data/array.h, and pipeline.h for the umbrella header pipeline/pipeline.h."""
    return header.name if header.parts == (header.stem, header.name) else header.as_posix()


def gather(out):
    known = set(guides())
    for guide in guides():
        to = out / "guides" / place_of(guide)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(copied(guide, known, out / "guides"))
    shutil.copyfile("tools/docs/site.css", out / "guides" / "site.css")
    # Under the names by which they are included.
    for header in public_headers():
        link = out / "include" / "millrace" / include_name(header)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(header.resolve())


def main():
    what, out = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "guides":
        gather(out)
    else:
        (out / "guides" / "reference.md").write_text(reference_page(out))


if __name__ == "__main__":
    main()
