"""Pages of reference, from what is there: the commands' own help, the package's docstrings, the C header.

    reference.py PROGRAM FOLDER
"""

import pathlib
import re
import subprocess
import sys

SUBCOMMAND = re.compile(r"^  ([a-z][\w-]*)")


def help_of(program, words):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True).stdout


def subcommands(text):
    inside = False
    for line in text.splitlines():
        if line.startswith("Subcommands:"):
            inside = True
        elif inside and line and not line.startswith(" "):
            inside = False
        elif inside and (match := SUBCOMMAND.match(line)):
            yield match.group(1)


def commands(program, words, out):
    text = help_of(program, words)
    out.append(f"{'#' * (len(words) + 1)} tensorsmith {' '.join(words)}".rstrip())
    out.append(f"\n```text\n{text.rstrip()}\n```\n")
    for name in subcommands(text):
        commands(program, [*words, name], out)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    out = []
    commands(program, [], out)
    (folder / "commands.md").write_text("\n".join(out), encoding="utf-8")
    package = pathlib.Path("python/tensorsmith")
    parts = [p.stem for p in sorted(package.glob("*.py")) if p.stem in PYTHON_PARTS]
    assert len(parts) == len(PYTHON_PARTS), set(PYTHON_PARTS) - set(parts)
    text = "# Python\n\n" + "\n".join(f"## {PYTHON_PARTS[part]}\n\n::: tensorsmith.{part}\n" for part in PYTHON_PARTS)
    (folder / "python.md").write_text(text, encoding="utf-8")
    header = pathlib.Path("src/runtime/tensorsmith.h").read_text(encoding="utf-8")
    wrapper = pathlib.Path("src/runtime/tensorsmith.hpp").read_text(encoding="utf-8")
    (folder / "c.md").write_text(
        f"# C and C++\n\n## tensorsmith.h\n\n```c\n{header}```\n\n## tensorsmith.hpp\n\n```c++\n{wrapper}```\n",
        encoding="utf-8",
    )


PYTHON_PARTS = {
    "work": "Tuning, compiling, predicting",
    "model": "Running",
    "session": "As ONNX Runtime",
    "database": "Records",
    "commands": "Commands, training",
    "torch_export": "Programs of torch",
    "torch_backend": "torch.compile",
    "errors": "Errors",
}

if __name__ == "__main__":
    main()
