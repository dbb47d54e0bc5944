"""Every help text stands alone: it is read in --help, and again as a comment of config.toml, where the flag before
it may be missing. So a text has at least four words, none that refers to its neighbour, and every program has
--version and examples."""
import pathlib
import re
import subprocess
import sys

FORBIDDEN = ["likewise", "so many", "that many", "so much", "of it", "of them", "of these", "of those", "of such", "has no word", "in them", "what is there",
             "how many", "the others", "see above", "as above", "by lot", "and so on", "anew"]
FORBIDDEN_STARTS = ["of ", "and ", "its ", "their ", "by ", "in ", "to ", "times ", "or ", "it ", "they "]
PROGRAMS = ["preprocess", "inspect", "search", "sample_digits", "generate", "train_mesh_autoencoder", "train_mesh_transformer", "train_mulan", "train_nuwa",
            "train_nuwa_vae", "train_video_tokenizer", "train_vqgan", "bench_audio", "bench_clips", "bench_images", "bench_listing", "bench_loader",
            "bench_meshes", "bench_tokens", "parity_check"]
COLUMN = 34  # where --help begins its texts


def told(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def texts_of(help_text):
    """(flag, text) of each option: the text begins in a fixed column, on the next line if the flag is long."""
    lines = help_text.split("\nExamples:")[0].splitlines()
    for line, following in zip(lines, [*lines[1:], ""]):
        if not re.match(r"  \S", line):
            continue
        below = following.startswith(" " * COLUMN)
        yield line.split()[0], (following if below else line[COLUMN:]).strip()


def problems_of(text):
    low = text.lower()
    words = re.findall(r"[\w'./<>-]+", text)
    if len(words) < 4:
        yield "fewer than four words"
    for word in FORBIDDEN:
        if re.search(rf"\b{re.escape(word)}\b", low):
            yield f"'{word}'"
    for start in FORBIDDEN_STARTS:
        if low.startswith(start):
            yield f"begins with '{start.strip()}'"


def check_the_check():
    """The texts that this test was written for are refused."""
    for bad in ("likewise", "of it", "so many rounds", "of attention", "how many", "and the discriminator's", "until then without; has no word", "clips"):
        assert list(problems_of(bad)), bad
    assert not list(problems_of("number of checkpoints to keep; 0 keeps all"))


def main():
    check_the_check()
    folder = pathlib.Path(sys.argv[1])
    bad, count = [], 0
    programs = [name for name in PROGRAMS if (folder / name).exists()]
    for name in programs:
        program = folder / name
        version = told(program, "--version")
        if not re.fullmatch(rf"{name} \(Millrace\) \d+\.\d+\.\d+\n", version):
            bad.append(f"{name} --version: {version!r}")
        whole = told(program, "--help")
        pages = {name: whole}
        if "Subcommands:" in whole:
            listed = re.findall(r"^  (\w+) ", whole.split("Subcommands:")[1].split("Examples:")[0], re.MULTILINE)
            pages.update({f"{name} {command}": told(program, command, "--help") for command in listed})
        for page, text in pages.items():
            if "Examples:" not in text:
                bad.append(f"{page} --help: no examples")
            for flag, words in texts_of(text.split("Subcommands:")[0]):
                count += 1
                bad += [f"{page} {flag}: {problem}: {words!r}" for problem in problems_of(words)]
    if bad or count < 30 * len(programs) // 4:
        sys.exit("\n".join([*bad, f"{len(bad)} problems in {count} texts of {len(programs)} programs"]))
    print(f"{count} help texts of {len(programs)} programs stand alone")


main()
