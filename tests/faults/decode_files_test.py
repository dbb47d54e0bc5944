"""decode_files distinguishes its outcomes. usage: decode_files_test.py PROGRAM"""
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image


def run(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    rows = [line.strip("| \n").split(" | ") for line in done.stdout.splitlines() if line.startswith("|")]
    return done.returncode, {row[0]: row[1:6] for row in rows}, done.stdout + done.stderr


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name) / "some"
    (folder / "inside").mkdir(parents=True)
    picture = Image.effect_noise((64, 48), 50).convert("RGB")
    picture.save(folder / "good.png")
    picture.save(folder / "inside" / "good.jpg")
    (folder / "cut.jpg").write_bytes((folder / "inside" / "good.jpg").read_bytes()[:1500])
    (folder / "triangle.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (folder / "noise.bin").write_bytes(b"this is no medium at all")

    code, table, output = run("--list", folder)
    assert code == 0, output
    assert table["some"] == ["5", "3", "1", "1", "0"], output
    assert table["all"] == table["some"], output
    assert f"refused: {folder}/noise.bin: " in output, output

    code, table, output = run("--seconds", "0.000001", folder)
    assert code == 1 and table["some"][4] == "5" and "took longer than" in output, output
    code, table, output = run("--megabytes", "1", folder)
    assert code == 1 and table["some"][4] == "5", output
    assert run(folder / "none")[0] == 2
print("decoded, tolerated, refused and faults are told apart")
