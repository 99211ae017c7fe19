#!/usr/bin/env python3
"""Checks that help texts fit their lines, that manual pages and completions match each command's --help, and that man
and the shells accept them.

    command_files_test.py TENSORSMITH help|man|bash|zsh|fish

Exits with 77 if the shell, or man, is not installed.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

SKIP = 77


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    return done.stdout


class Help:
    """Parsed `--help` of a command: its options (name -> choices, or None if it takes no value), its commands, and
    their headings in order."""

    def __init__(self, text):
        self.options, self.commands, self.headings = {}, [], []
        entries, heading = [], ""
        for line in text.splitlines():
            if re.match(r"\w.*:$", line):
                heading = line
                if heading not in ("Arguments:", "Examples:"):
                    self.headings.append(heading)
            # Names begin in the third column; text further right continues a description.
            entry = re.match(r"  (\S+(?: \S+)*)(.*)", line)
            if entry and heading in self.headings:
                entries.append([entry[1], entry[2]])
            elif line.startswith("   ") and entries:
                entries[-1][1] += " " + line.strip()
        for names, description in entries:
            if not names.startswith("-"):
                self.commands.append(names)
                continue
            *parts, last = names.split(", ")
            last, *placeholder = last.split(" ")
            choices = re.search(r"(?:\(|; )one of ([^;()]*)(?:; [^()]*)?\)$", description)
            for name in [*parts, last]:
                self.options[name] = choices[1].split(", ") if choices else [] if placeholder else None


def check_width(text, columns):
    """Checks that lines fit the width, except for examples and words that are longer than their column."""
    for line in text.split("\nExamples:\n")[0].splitlines():
        assert len(line) <= columns or " " not in line.strip(), (columns, line)


def check_default_width(program):
    """Checks that the width is 80 columns without COLUMNS and a terminal, and the terminal's width otherwise."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    piped = run(program, "tune", "--help", env=environment)
    assert piped == run(program, "tune", "--help", env={**environment, "COLUMNS": "80"})
    child, terminal = pty.fork()
    if child == 0:
        # The size must be set before the program asks for it.
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
        os.execve(program, [program, "tune", "--help"], environment)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the program has ended
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    expected = run(program, "tune", "--help", env={**environment, "COLUMNS": "61"})
    assert shown.decode().replace("\r\n", "\n") == expected != piped, shown


def check_order(program):
    """Checks that users' commands come first, and that a command's basic options precede the others."""
    top = Help(run(program, "--help"))
    assert top.headings[0] == "Commands:" and len(top.headings) > 3, top.headings
    assert set(top.commands[:10]) == {"tune", "bench", "run", "compile", "predict", "report", "tasks", "zoo", "devices",
                                      "db"}, top.commands
    tune = Help(run(program, "tune", "--help"))
    assert tune.headings[:2] == ["Options:", "Reading the model:"], tune.headings
    names = list(tune.options)
    assert names.index("--seconds") < names.index("--help") < names.index("--shape") < names.index("--epsilon"), names


def check_help(program):
    helps(program)
    check_default_width(program)
    check_order(program)


def helps(program):
    """Returns the Help of each command, by its words."""
    out, waiting = {}, [()]
    while waiting:
        words = waiting.pop()
        texts = {columns: run(program, *words, "--help", env={**os.environ, "COLUMNS": str(columns)})
                 for columns in (50, 80, 300)}
        for columns, text in texts.items():
            check_width(text, columns)
        said = {columns: Help(text) for columns, text in texts.items()}
        # The texts must be equal for all line lengths.
        assert vars(said[50]) == vars(said[80]) == vars(said[300]), words
        out[words] = said[80]
        assert "--help" in out[words].options, words
        waiting += [words + (name,) for name in out[words].commands]
    assert len(out) > 30
    return out


def check_man(program):
    if not shutil.which("man"):
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as folder:
        run(program, "man", "--all", folder)
        commands = helps(program)
        names = {"-".join(("tensorsmith",) + words) + ".1" for words in commands}
        assert set(os.listdir(folder)) == names, set(os.listdir(folder)) ^ names
        for words, help_ in commands.items():
            path = os.path.join(folder, "-".join(("tensorsmith",) + words) + ".1")
            environment = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C", "MANPAGER": "cat"}
            shown = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, env=environment)
            assert shown.returncode == 0 and not shown.stderr, (path, shown.stderr)
            if shutil.which("mandoc"):
                lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
                assert lint.returncode == 0, lint.stdout
            text = shown.stdout
            for option, choices in help_.options.items():
                assert re.search(r"(^|[\s,])" + option + r"([\s,]|$)", text, re.M), (path, option)
                for choice in choices or []:
                    assert choice in text, (path, option, choice)
            for name in help_.commands:
                assert "-".join(("tensorsmith",) + words + (name,)) in text, (path, name)
            for heading in set(help_.headings) - {"Commands:", "Options:"}:  # the page has sections of these names
                assert heading.rstrip(":") in text, (path, heading)
            with open(path, encoding="utf-8") as page:
                assert run(program, "man", *words) == page.read()
        unknown = subprocess.run([program, "man", "nonsense"], capture_output=True, text=True)
        assert unknown.returncode == 1 and "is not a command" in unknown.stderr, unknown


def words_asked(commands):
    """Yields command lines, whose last word is unfinished, and all words that must be offered."""
    for words, help_ in commands.items():
        yield [*words, "--"], {name for name in help_.options if name.startswith("--")}
        if help_.commands:
            yield [*words, ""], set(help_.commands)
        for option, choices in help_.options.items():
            if choices:
                yield [*words, option, ""], set(choices)


def check_bash(program):
    if not shutil.which("bash"):
        sys.exit(SKIP)
    script = run(program, "completion", "bash")

    def complete(words):
        # Readline splits words at '=', too.
        quoted = " ".join("'" + word + "'" for word in ["tensorsmith", *words])
        return run("bash", "--norc", "-c", script + f"""
            [[ $(complete -p tensorsmith) == 'complete -F _tensorsmith tensorsmith' ]] || exit 3
            COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _tensorsmith
            [[ ${{#COMPREPLY[@]}} == 0 ]] || printf '%s\\n' "${{COMPREPLY[@]}}" """).splitlines()

    check_words(program, complete)
    assert complete(["compile", "--emit", "=", ""]) == ["c"]
    assert complete(["compile", "--emit", "="]) == ["c"]
    assert complete(["tune", "--trials", ""]) == []  # a number
    assert "--seconds" in complete(["tune", "--db", "db", "--sec"])  # the value of an option is not a command
    with open("model.onnx", "w", encoding="utf-8"):
        pass
    assert complete(["tune", "mod"]) == ["model.onnx"] == complete(["tune", "--db", "mod"])
    assert complete(["tune", "--trials", "mod"]) == []


def check_fish(program):
    if not shutil.which("fish"):
        sys.exit(SKIP)
    with tempfile.NamedTemporaryFile("w", suffix=".fish") as script:
        script.write(run(program, "completion", "fish"))
        script.flush()
        run("fish", "--no-config", "--no-execute", script.name)

        def complete(words):
            line = " ".join(["tensorsmith", *words])
            shown = run("fish", "--no-config", "-c", f"source {script.name}; complete -C '{line}'")
            return [entry.split("\t")[0] for entry in shown.splitlines()]

        check_words(program, complete)
        assert complete(["tune", "--trials", ""]) == []  # a number
        with open("model.onnx", "w", encoding="utf-8"):
            pass
        assert complete(["tune", "mod"]) == ["model.onnx"]
        assert complete(["tune", "--trials", "mod"]) == []


def check_zsh(program):
    if not shutil.which("zsh"):
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "_tensorsmith")
        with open(path, "w", encoding="utf-8") as script:
            script.write(run(program, "completion", "zsh"))
        run("zsh", "-n", path)

        # An interactive shell that lists the completions in one column.
        def complete(words):
            line = " ".join(["tensorsmith", *words])
            child, terminal = pty.fork()
            if child == 0:
                os.environ.update(ZDOTDIR=folder, TERM="dumb", COLUMNS="200", LINES="500", PS1="READY>")
                os.chdir(folder)
                os.execvp("zsh", ["zsh", "-f", "-i"])
            try:
                setup = (f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; stty cols 200 rows 500; "
                         "LISTMAX=0; unsetopt automenu; zstyle ':completion:*' list-separator '##'; PROMPT=; "
                         "bindkey '^I' complete-word; bindkey '^X' list-choices; print SET''UP")
                os.write(terminal, setup.encode() + b"\n")
                read_until(terminal, b"SETUP")
                os.write(terminal, line.encode() + b"\x18")
                return re.findall(r"[^\s#]+", read_quiet(terminal))
            finally:
                os.kill(child, 9)
                os.waitpid(child, 0)
                os.close(terminal)

        some = {(), ("tune",), ("db",), ("db", "export"), ("profile",), ("compile",), ("search-hyperparameters",)}
        commands = {words: help_ for words, help_ in helps(program).items() if words in some}
        for words, expected in words_asked(commands):
            offered = complete(words)
            missing = expected - {word.rstrip("=") for word in offered}
            assert not missing, (words, missing, offered)


def read_until(terminal, mark):
    seen, end = b"", time.monotonic() + 60
    while mark not in seen.replace(b"\r", b""):
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)


def read_quiet(terminal):
    """Reads the output until nothing more comes."""
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1.5 if seen.count(b"\n") else 10)[0]:
            seen += os.read(terminal, 65536)
        else:
            break
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", seen.decode(errors="replace"))


def check_words(program, complete):
    """Checks that exactly the words in --help are offered."""
    asked = 0
    for words, expected in words_asked(helps(program)):
        offered = set(complete(words))
        assert expected == offered if expected and words[-1] == "" else expected <= offered, (words, expected, offered)
        assert all(word.startswith("--") for word in offered) or words[-1] != "--", (words, offered)
        asked += 1
    assert asked > 50, asked
    assert complete(["tu"]) == ["tune"]


def main():
    program, what = sys.argv[1:]
    check = {"help": check_help, "man": check_man, "bash": check_bash, "fish": check_fish, "zsh": check_zsh}[what]
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as empty:  # no files to complete
        os.chdir(empty)
        check(program)


main()
