#!/usr/bin/env python3
"""Writes a C++ file of all examples in leading comments of headers and in READMEs, to be compiled.

usage: extract.py OUT.cc --prelude FILE --skip FILE [--source-dir DIR] FILE.h... FILE.md...

In a header an example is a run of lines of the first comment that are indented by three spaces or
more; in Markdown it is a block ```cpp. It becomes the body of a function in a namespace of its own,
after a #line that names the header or README, so that the compiler's messages point there. Names that
an example uses and does not declare come from the prelude.
"""
import argparse
import pathlib
import re
import sys

INDENT = 3  # what follows "//" in a header's example


def examples_of_header(lines):
    """Yields (line number of the first line, lines) for each example of the leading comment."""
    found, start = [], 0
    for number, line in enumerate(lines + [""], 1):
        text = line[2:] if line.startswith("//") else None
        if text is not None and text.startswith(" " * INDENT) and text.strip():
            if not found:
                start = number
            found.append(text[INDENT:])
        elif text is not None and not text.strip() and found:
            found.append("")
        else:
            if found:
                yield start, found
            found = []
        if text is None:
            return


def examples_of_markdown(lines):
    found, start = None, 0
    for number, line in enumerate(lines, 1):
        if found is None and line.strip() == "```cpp":
            found, start = [], number + 1
        elif found is not None and line.strip() == "```":
            yield start, found
            found = None
        elif found is not None:
            found.append(line)


class Example:
    """One example as C++: its #includes go to the top of the file, the rest into a namespace."""

    def __init__(self, name, file, start, lines):
        self.name = name
        self.includes = [line for line in lines if line.startswith("#include")]
        self.at = f'#line {start} "{file}"'
        self.lines = ["" if line.startswith("#include") else line for line in lines]

    def code(self):
        text = "\n".join(self.lines)
        first = next((line for line in self.lines if line.strip()), "")
        if re.search(r"^int main\(", text, re.M):  # a whole program
            parts = ['#pragma GCC diagnostic push', '#pragma GCC diagnostic ignored "-Wreturn-type"', self.at]
            parts += [re.sub(r"^int main\(", "int example_main(", text, flags=re.M)]
            parts += ["#pragma GCC diagnostic pop"]
        elif re.match(r"(class|struct|template|enum)\b", first):  # declarations, then perhaps statements
            end = self.lines.index("};") + 1 if "};" in self.lines else len(self.lines)
            parts = [self.at, "\n".join(self.lines[:end]), "Returned example() {"]
            parts += ["\n".join(self.lines[end:]), "return {};", "}"]
        elif "override {" in first:  # a member function of a data set
            parts = ["struct Example : DatasetOfExample {", self.at, text, "};"]
        else:
            parts = ["Returned example() {", self.at, text, "return {};", "}"]
        return "\n".join([f"namespace {self.name} {{", *parts, "}  // namespace", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--prelude", action="append", default=[])
    parser.add_argument("--skip", type=pathlib.Path, help="headers whose examples do not compile yet")
    parser.add_argument("--source-dir", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    skipped = set()
    if arguments.skip:
        lines = arguments.skip.read_text().splitlines()
        skipped = {line.strip() for line in lines if line.strip() and not line.startswith("#")}

    headers, examples = [], []
    for file in arguments.files:
        relative = file.resolve().relative_to(arguments.source_dir.resolve()).as_posix()
        lines = file.read_text().splitlines()
        if file.suffix == ".h":
            # Headers are given as <build>/include/millrace/room/folder/name.h, links to the sources.
            headers.append(file.as_posix().rsplit("/include/", 1)[-1])
            found = examples_of_header(lines)
        else:
            found = examples_of_markdown(lines)
        for start, text in found:
            if relative in skipped:
                continue
            name = re.sub(r"\W", "_", f"{relative}_{start}")
            examples.append(Example(name, arguments.source_dir / relative, start, text))

    out = [f"// Made by tests/examples/extract.py of {len(arguments.files)} files."]
    for header in headers:
        out.append(f"#include <{header}>")
    out += sorted({include for example in examples for include in example.includes})
    out += [f'#include "{prelude}"' for prelude in arguments.prelude]
    out += ["", "namespace millrace_examples {", "using namespace millrace;", ""]
    out += [example.code() for example in examples]
    out += ["}  // namespace millrace_examples", ""]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(out))
    print(f"{arguments.out.name}: {len(examples)} examples of {len(arguments.files)} files")


if __name__ == "__main__":
    sys.exit(main())
