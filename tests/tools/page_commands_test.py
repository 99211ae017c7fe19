#!/usr/bin/env python3
"""Runs every command of the pages for users: page_commands_test.py SOURCE TENSORSMITH RUNTIME_FOLDER MNIST_FOLDER
PAGE

Commands are in indented blocks and in `code`. Commands of `tensorsmith` run in sequence in a separate folder, as a
reader would type them, but with a small network and a few seconds (REPLACED). Other commands are run by other
scripts; this test looks up that they are (ELSEWHERE). Blocks of C are compiled against the runtime and run.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter

# Page -> section -> the model used as model.onnx there, unless it is the network of the zoo.
MODELS = {"docs/cookbook.md": {"Compile in continuous integration": "mnist", "Find out where the time of a run goes": "mnist"}}
REPLACED = [
    (r"^tensorsmith zoo export \S+", "tensorsmith zoo export squeezenet1_1 --size 64 --force"),
    (r"image=\d+(x\d+)+", "image=1x3x64x64"),
    (r"--seconds \d+m\b", "--seconds 0.05m"),
    (r"--seconds \d+\b(?!\.)", "--seconds 3"),
    (r"--trials \d+", "--trials 4 --heaviest 1"),
    (r"^tensorsmith tune (?!.*(--seconds|--no-measure))", "tensorsmith tune --seconds 3 "),
    (r"^tensorsmith transfer ", "tensorsmith transfer --seconds 3 "),
    (r"--device local:threads=1 --seconds 3", "--device local:threads=1 --seconds 6"),
]
# The cookbook's models have other inputs than the network of the zoo.
INPUTS = {"docs/cookbook.md": (r"--(shape|input) (x|data)=", r"--\1 image=")}
# These need a server and another machine, which tests/record/postgresql_test.cc and the fleet tests have.
SERVER = re.compile(r"postgresql://")
# Pattern of a command, the file that runs it, and the text that this file must contain.
ELSEWHERE = [
    (r"pip install (dist/)?tensorsmith-\*\.whl", "scripts/build_wheel", '/pip" install'),
    (r"python3 -m venv tensorsmith_env|\. tensorsmith_env/bin/activate", "scripts/build_wheel", "-m venv"),
    (r"python3 -m tensorsmith\.peers mine=model\.onnx:model_tuned", "tests/python/test_compare_engines.py", '"-m", "tensorsmith.peers"'),
    (r"apt install \./tensorsmith_\*\.deb( \./libtensorsmith-\*\.deb)?", "scripts/test_packages", "/tmp/debs/libtensorsmith-*.deb"),
    (r"podman build -t tensorsmith \.", ".github/workflows/release.yml", "docker build --file Containerfile"),
    (r"scripts/demo", "scripts/check_demo", "scripts/demo"),
    (r"scripts/build_wheel", ".github/workflows/release.yml", "scripts/build_wheel"),
    (r"scripts/build_packages", "Containerfile", "scripts/build_packages"),
    (r"cmake --install build/release --prefix ~/tensorsmith", "tests/tools/install_test.sh", "cmake --install"),
    (r"(export PKG_CONFIG_PATH=|cc program\.c \$\(pkg-config --cflags --libs tensorsmith\)).*", "tests/tools/install_test.sh",
     "$(pkg-config --cflags --libs tensorsmith)"),
]
COMMAND = re.compile(r"^(tensorsmith [-a-z]|pip |apt |podman |docker |python3 |\. |scripts/|cmake )")


def commands(text):
    """Yields (section, command) in the order of the page."""
    section, fenced = "", False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            continue
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("    "):
            yield section, re.sub(r"\s+# .*", "", line.strip())
        else:
            for code in re.findall(r"`([^`]+)`", line):
                if COMMAND.match(code) and not code.endswith("..."):
                    yield section, code


def npy(shape):
    """Returns the content of a .npy file of ones."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    count = 1
    for extent in shape:
        count *= extent
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", 1) * count


class Reader:
    def __init__(self, source, program, runtime, mnist, folder, page):
        self.replaced = ([INPUTS[page]] if page in INPUTS else []) + REPLACED
        self.source, self.runtime, self.mnist, self.folder = source, runtime, mnist, folder
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "tensorsmith").symlink_to(program)
        self.environment = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}")
        self.work = folder / "work"
        self.work.mkdir()
        self.failures, self.ran, self.looked_up = [], set(), 0

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.work, env=self.environment, capture_output=True, text=True)

    def fail(self, command, why):
        self.failures.append(command)
        print(f"FAILED: {command}\n{why}")

    def prepare(self, kind):
        """Makes the files that the commands expect."""
        model = self.work / "model.onnx"
        if kind == "mnist":
            shutil.copy(self.mnist / "model.onnx", model)
            shutil.copytree(self.mnist / "test_data_set_0", self.work / "test_data_set_0", dirs_exist_ok=True)
            self.shell("tensorsmith tune model.onnx -o tuned --seconds 8 --quiet")  # few tasks, so each gets many programs
        else:
            subprocess.run(["tensorsmith", "zoo", "export", "squeezenet1_1", "--size", "64", "--force", "-o", model],
                           env=self.environment, check=True, capture_output=True)
        for name in ("x.npy", "image.npy"):
            (self.work / name).write_bytes(npy((1, 3, 64, 64)))
        made = self.work / "made"
        if not made.exists():
            result = self.shell("tensorsmith tune model.onnx -o made --seconds 3 --db mine.db --quiet && cp mine.db tensorsmith.db"
                                " && tensorsmith db export mine.db records.jsonl")
            if result.returncode:
                self.fail("(preparation)", result.stderr)
        if kind != "mnist":
            for name in ("tuned", "model_tuned"):
                shutil.rmtree(self.work / name, ignore_errors=True)
                shutil.copytree(made, self.work / name)

    def key(self):
        """Returns the key of the task of model.onnx with the most records in tensorsmith.db."""
        keys = [task["key"] for task in json.loads(self.shell("tensorsmith tasks model.onnx --json").stdout)["tasks"]]
        self.shell("tensorsmith db export tensorsmith.db counted.jsonl --force")
        exported = self.work / "counted.jsonl"
        lines = exported.read_text(encoding="utf-8").splitlines() if exported.is_file() else []
        counts = Counter(entry["task"] for entry in map(json.loads, lines) if "task" in entry)
        return max(keys, key=lambda key: counts[key])

    def run(self, command):
        if command in self.ran:
            return
        self.ran.add(command)
        for what, file, text in ELSEWHERE:
            if re.fullmatch(what, command):
                self.looked_up += 1
                path = self.source / file
                if not path.is_file() or text not in path.read_text(encoding="utf-8"):
                    self.fail(command, f"{file} does not run it any more: no '{text}' there")
                return
        if not command.startswith("tensorsmith "):
            self.fail(command, "no test runs it: add it to ELSEWHERE, with the file that runs it")
            return
        if SERVER.search(command):
            self.looked_up += 1
            return
        typed = command
        for pattern, new in self.replaced:
            typed = re.sub(pattern, new, typed)
        if "KEY" in typed:
            typed = typed.replace("KEY", self.key())
        result = self.shell(typed)
        print(f"{'ok' if result.returncode == 0 else result.returncode}: {typed}")
        if result.returncode:
            self.fail(command, result.stderr + result.stdout)

    def c_block(self, block):
        """Compiles a snippet as the body of main() and runs it beside the compiled model."""
        name = "snippet"
        tensors = "" if "inputs[]" in block else "const void* inputs[] = {image}; void* outputs[] = {scores};"
        lines = [line for line in block.splitlines() if not line.startswith("#include")]
        (self.work / f"{name}.c").write_text(
            '#include <stdio.h>\n#include "tensorsmith.h"\nstatic _Alignas(64) float image[3 * 224 * 224], scores[1000];\n'
            f"int main(void) {{\n{tensors}\n" + "\n".join(lines) + "\nputs(\"ran\");\nreturn 0;\n}\n", encoding="utf-8")
        result = self.shell(
            f"cc -std=c11 -Wall -Werror {name}.c -I{shlex.quote(str(self.source / 'src/runtime'))} -L{shlex.quote(str(self.runtime))} "
            f"-ltensorsmith_runtime -Wl,-rpath,{shlex.quote(str(self.runtime))} -o {name} && ./{name}")
        print(f"C: {result.returncode} {result.stdout.strip()}")
        if result.returncode or result.stdout != "ran\n" or result.stderr:
            self.fail(block, result.stderr)


def main():
    source, program, runtime, mnist = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
    page = sys.argv[5]
    text = (source / page).read_text(encoding="utf-8")
    found = list(commands(text))
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(source, program, runtime, mnist, pathlib.Path(folder), page)
        kind = None
        for section, command in found:
            wanted = MODELS.get(page, {}).get(section, "zoo")
            if wanted != kind:
                kind = wanted
                reader.prepare(kind)
            reader.run(command)
        if not kind:
            reader.prepare("zoo")
        blocks = re.findall(r"```c\n(.*?)```", text, re.S)
        for block in blocks:
            reader.c_block(block)
        print(f"{page}: {len(reader.ran)} commands, {reader.looked_up} of them run elsewhere, {len(blocks)} blocks of C")
        if not reader.ran and not blocks:
            reader.fail(page, "has no command")
    return 1 if reader.failures else 0


if __name__ == "__main__":
    sys.exit(main())
