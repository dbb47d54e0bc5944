#!/usr/bin/env python3
"""Doxygen's input filter: the plain // comments of our headers as documentation.

The leading comment describes the file, and the class that the file is named after. A comment before a
declaration describes it; one after a declaration, on the same line, describes that. Lines indented by three
spaces or more are code. Characters that mean something to Doxygen are escaped.
"""
import pathlib
import re
import sys


def escaped(text):
    parts = text.split("`")  # code between backticks stays as it is
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\@#<>&%*~|])", r"\\\1", parts[i])
    return "`".join(parts)


def as_documentation(texts, mark="///"):
    """Lines of a comment, without their slashes, as documentation."""
    out, code = [], False
    for i, text in enumerate(texts):
        indented = text.startswith("   ") and text.strip()
        if indented and not code:
            out.append(f"{mark} @code{{.cpp}}")
            code = True
        following = next((t for t in texts[i:] if t.strip()), "")
        if code and not indented and not (not text.strip() and following.startswith("   ")):
            out.append(f"{mark} @endcode")
            code = False
        out.append(f"{mark} {text[3:]}" if code else f"{mark}{escaped(text)}")
    if code:
        out.append(f"{mark} @endcode")
    return out


def class_of(path):
    return "".join(part.capitalize() for part in path.stem.split("_"))


def main():
    path = pathlib.Path(sys.argv[1])
    lines = path.read_text().splitlines()
    leading = []
    while lines and lines[0].startswith("//"):
        leading.append(lines.pop(0)[2:])
    documentation = as_documentation(leading)
    out = ["/// @file", *documentation, ""]
    names = {class_of(path).lower(), class_of(path).lower() + "impl"}
    pending = False  # the line before is a comment
    block = []

    def flush():
        out.extend((block[0][0] + line) for line in as_documentation([text for _, text in block]))
        block.clear()

    for line in lines:
        whole = re.match(r"^(\s*)//(?!/)(.*)$", line)
        if whole:
            block.append((whole[1], whole[2]))
            continue
        if block:
            if line.strip() and not line.startswith(("#", "}")):
                flush()
                pending = True
            else:  # it describes what follows as a group, or nothing
                out.extend(f"{indent}//{text}" for indent, text in block)
                block.clear()
        kind = re.match(r"^(class|struct) (\w+)\b(?!::)(?!.*;$)", line)
        if kind and not pending and kind[2].lower() in names:
            out.extend(documentation)
        trailing = re.match(r'^(.*[;,{})\w])\s+//(?!/)\s?(.*)$', line)
        if trailing and trailing[1].strip() and '"' not in trailing[2] and not line.lstrip().startswith(("#", "}")):
            code = trailing[1]
            if code.rstrip().endswith("{"):
                out.append(code)
            else:
                out.append(f"{code}  ///< {escaped(trailing[2])}")
        else:
            out.append(line)
        pending = False
    print("\n".join(out))


if __name__ == "__main__":
    main()
