"""Finds names that the tree defines twice (violations of the one-definition rule).

A program that links two meanings of one name is undefined, and no compiler reports it. Two checks:

1. sources: every class, struct, union, enum, alias and function that is defined at namespace scope
   must have its fully qualified name (functions: with their parameters) in one file only. Unnamed
   namespaces and `static` functions belong to one file and are left out.
2. archives: a strong symbol must be defined in one object file only. This is what
   `ld --whole-archive` of all archives would refuse.

    names_defined_once.py SOURCE_DIR [NM ARCHIVE...]

Exit code 1 if a name is defined twice; each is printed with its files.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOMS = ("pipeline", "decoders", "datasets", "training", "tools")

BLANKED = re.compile(
    r"""//[^\n]*                                     # comments
      | /\*.*?\*/
      | R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"   # strings and characters
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'
      | ^[ \t]*\#(?:\\\n|[^\n])*                     # preprocessor""",
    re.DOTALL | re.MULTILINE | re.VERBOSE)

NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b\s*(?:\[\[.*?\]\]\s*)?([\w:]*)\s*$")
TYPE = re.compile(r"""^(?:template\s*<.*>\s*(?:requires\b.*)?)?(?:typedef\s+)?
    (?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+
    (?:alignas\s*\([^)]*\)\s*|\[\[.*?\]\]\s*)*
    (?P<name>[\w:]+(?:<.*>)?)\s*(?:final\b\s*)?(?::(?!:).*)?$""", re.VERBOSE | re.DOTALL)
ALIAS = re.compile(r"^(?:template\s*<.*>\s*)?using\s+(\w+)\s*=", re.DOTALL)
FUNCTION = re.compile(r"(?P<name>(?:[\w~]+::)*(?:operator\s*(?:\(\s*\)|[^\s\w(]+|\w+)|~?\w+))\s*\((?P<rest>.*)$",
                      re.DOTALL)
NO_NAME = {"alignas", "decltype", "noexcept", "requires", "if", "for", "while", "switch", "defined"}


def parameters_of(rest):
    """The text up to the parenthesis that closes the list, as one line without spaces, and without
    the names and defaults of the parameters where that is easy to see."""
    depth, end = 1, 0
    for end, letter in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            break
    tail = rest[end + 1:].split("->")[0]
    parts, depth, part = [], 0, ""
    for letter in rest[:end]:
        depth += {"(": 1, ")": -1, "<": 1, ">": -1, "{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    parts.append(part)
    kinds = []
    for part in parts:
        part = re.sub(r"\s*=.*$", "", part.strip(), flags=re.DOTALL)
        part = re.sub(r"^(.*[\w>&*\s])\b\w+$", r"\1", part, flags=re.DOTALL) if " " in part else part
        kinds.append(re.sub(r"\s+", "", part))
    const = " const" if re.match(r"\s*const\b", tail) else ""
    return "(" + ",".join(kinds) + ")" + const


def definitions(text):
    """Yields (qualified name, line) of what `text` defines at namespace scope."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", lambda m: " " * len(m.group()), text)
    blanked = BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    scopes = []     # names of the open namespaces; None: an unnamed namespace or no namespace
    arguments = []  # depths of braces inside of parentheses, which end no statement
    start = 0       # of the statement being read
    for match in re.finditer(r"[{};]", blanked):
        mark, at = match.group(), match.start()
        if mark == "}" and arguments and arguments[-1] == len(scopes):
            scopes.pop()
            arguments.pop()
            continue  # the statement goes on
        head = blanked[start:at].strip()
        line = blanked.count("\n", 0, at) + 1
        visible = None not in scopes
        qualify = lambda name: "::".join([s for s in scopes if s] + [name])
        if mark == "}":
            start = at + 1
            if scopes:
                scopes.pop()
            continue
        if mark == ";":
            start = at + 1
            if visible and (alias := ALIAS.match(head)):
                yield qualify(alias.group(1)) + " alias", line
            continue
        if head.count("(") > head.count(")"):  # a default argument: `options = {}`
            scopes.append(None)
            arguments.append(len(scopes))
            continue
        start = at + 1
        space = NAMESPACE.match(head)
        if space:
            scopes.append(space.group(1) or None)
            continue
        if head == "" or re.match(r'^extern\s*$', head):  # extern "C" {
            scopes.append("" if head else None)
            continue
        if visible and (alias := ALIAS.match(head)):
            yield qualify(alias.group(1)) + " alias", line
        elif visible and (kind := TYPE.match(head)):
            yield qualify(re.sub(r"\s+", "", kind.group("name"))), line
        elif visible and not re.match(r"(template\s*<.*>\s*)?static\b", head, re.DOTALL):
            name = function_of(head)
            if name:
                yield qualify(name), line
        scopes.append(None)  # inside of a body nothing is at namespace scope


def function_of(head):
    """`int f(int a)` -> `f(int)`; None for a variable with braces."""
    without = head
    prefix = re.match(r"template\s*<", without)
    template = ""
    if prefix:
        depth = 0
        for i, letter in enumerate(without):
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == ">" and depth == 0:
                template = re.sub(r"\s+", "", re.sub(r"\s*\w+\s*(?=[,>])", "", without[:i + 1]))
                without = without[i + 1:]
                break
    found = FUNCTION.search(without)
    while found:
        name = re.sub(r"\s+", "", found.group("name"))
        before = without[:found.start()]
        if name in NO_NAME or "=" in before:
            return None
        if before.count("<") == before.count(">"):
            return template + name + parameters_of(found.group("rest"))
        found = FUNCTION.search(without, found.start("rest"))  # that was std::function<int(int)>
    return None


def twice_in_sources(root):
    where = collections.defaultdict(dict)
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in (".h", ".cc", ".cu") or not file.is_file():
                continue
            short = file.relative_to(root).as_posix()
            for name, line in definitions(file.read_text(encoding="utf-8")):
                # A program has one main(). An alias in a source file is seen by that file alone.
                if not name.startswith("main(") and not (name.endswith(" alias") and file.suffix == ".cc"):
                    where[name.removesuffix(" alias")].setdefault(short, line)
    return len(where), {name: files for name, files in where.items() if len(files) > 1}


def twice_in_archives(nm, archives):
    """Strong symbols (kinds T, D, B, R of nm) that two object files define."""
    where = collections.defaultdict(set)
    for archive in archives:
        out = subprocess.run([nm, "--demangle", "--defined-only", "--extern-only", "--print-file-name",
                              archive], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            found = re.match(r"(.*?):[0-9a-f]* ([TDBR]) (.*)$", line)
            if found:
                where[found.group(3)].add(found.group(1))
    return len(where), {name: files for name, files in where.items() if len(files) > 1}


def self_test():
    text = """
    namespace a { enum class Stage : int { load }; using Bytes = int;  namespace {
      class Hidden {}; int hidden() { return 0; } }
      class Later; struct Outer final : Base<int> { struct Inner {}; int f() { return 1; } };
      template <class T> struct Box { T t; }; template <> struct Box<int> {};
      inline int twice(int a, const char* b = "}") { struct Local {}; return a; }
      static int own() { return 1; }  /* class Comment {}; */
      int later(Options o = {}, int a = 0); int done(Options o = {.a = 1}) { return 1; }
      int table[] = {1, 2}; std::function<int(int)> made(int a) { return {}; } class Outer::Nested {}; int Outer::g(int x) const { return x; }
    }
    namespace a::detail { struct Deep {}; }
    """
    names = {name for name, _ in definitions(text)}
    expected = {"a::Stage", "a::Bytes alias", "a::Outer", "a::Box", "a::Box<int>", "a::twice(int,constchar*)",
                "a::Outer::Nested", "a::done(Options)", "a::made(int)",
                "a::Outer::g(int) const", "a::detail::Deep"}
    assert names == expected, (names - expected, expected - names)


def main():
    self_test()
    count, twice = twice_in_sources(pathlib.Path(sys.argv[1]))
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in " + " and ".join(f"{f}:{n}" for f, n in files.items()))
    print(f"{count} names at namespace scope, {len(twice)} of them defined twice")
    failed = bool(twice) or count < 400
    if len(sys.argv) > 3:
        count, twice = twice_in_archives(sys.argv[2], sys.argv[3:])
        for name, files in sorted(twice.items()):
            print(f"symbol {name} is defined in " + " and ".join(sorted(files)))
        print(f"{count} symbols in {len(sys.argv) - 3} archives, {len(twice)} of them defined twice")
        failed = failed or bool(twice) or count < 400
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
