"""Groups source files for clang-tidy: writes FOLDER/N.cc, which include a dozen files from different folders each,
and FOLDER/compile_commands.json.

    python3 scripts/lint_groups.py COMPILE_COMMANDS FOLDER FILE...
"""
import json
import os
import shlex
import sys

FILES_TOGETHER = 12

commands, folder, *files = sys.argv[1:]
flags = {}  # include folders and definitions of all files of src
for entry in json.load(open(commands)):
    if "/src/" not in entry["file"] or "/learn/net/" in entry["file"] or not entry["file"].endswith(".cc"):
        continue
    words = shlex.split(entry["command"])
    for word, after in zip(words, words[1:]):
        if word == "-isystem":
            flags["-isystem " + shlex.quote(after)] = None
        elif word.startswith(("-I", "-D", "-std=")):
            flags[shlex.quote(word)] = None
groups = -(-len(files) // FILES_TOGETHER)
made = []
for g in range(groups):
    name = os.path.abspath(f"{folder}/{g}.cc")
    with open(name, "w") as out:
        out.writelines(f'#include "{os.path.abspath(f)}"\n' for f in files[g::groups])
    made.append({"directory": os.getcwd(), "file": name, "command": f"c++ {' '.join(flags)} -c {name}"})
with open(f"{folder}/compile_commands.json", "w") as out:
    json.dump(made, out)
