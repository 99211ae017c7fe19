"""Pages of reference, from what is there: the commands' manual pages, the package's docstrings, the C header.

    reference.py PROGRAM FOLDER
"""

import html
import pathlib
import re
import subprocess
import sys

ESCAPES = {"\\e": "\\", "\\-": "-", "\\(ti": "~", "\\(ha": "^", "\\(ga": "`", "\\(aq": "'", "\\&": ""}
ESCAPE = re.compile("|".join(re.escape(escape) for escape in ESCAPES))
FONT = re.compile(r"\\f([BIR])")
FONT_TAGS = {"B": ("<code>", "</code>"), "I": ("<var>", "</var>"), "R": ("", "")}
CODE = re.compile(r"`([^`]+)`")


def plain(text):
    return ESCAPE.sub(lambda match: ESCAPES[match.group(0)], FONT.sub("", text))


def inline(text):
    """HTML of a line of roff: bold is what one types, italic stands for something else."""
    out, closing = "", ""
    for i, part in enumerate(FONT.split(text)):
        if i % 2:
            out += closing
            opening, closing = FONT_TAGS[part]
            out += opening
        else:
            out += CODE.sub(r"<code>\1</code>", html.escape(plain(part), quote=False))
    return out + closing


class Section:
    def __init__(self, title):
        self.title = title
        self.items = []  # (term, lines), both roff; the term is None for text by itself
        self.groups = {}  # index of an item -> the subtitle before it


def sections(page):
    """The sections of a manual page that man_pages.cc has written, by title."""
    out, term, verbatim = {}, False, False
    for line in page.splitlines():
        if line.startswith(".SH "):
            section = out.setdefault(line[4:], Section(line[4:]))
        elif line.startswith(".SS "):
            section.groups[len(section.items)] = line[4:]
            section.items.append((None, []))
        elif line in (".EX", ".EE"):
            verbatim = line == ".EX"
        elif line == ".TP":
            term = True
        elif line == ".br" or line.startswith(".TH "):
            continue
        else:
            for macro in (".BR ", ".B "):
                if line.startswith(macro) and not verbatim:
                    line = "\\fB" + line[len(macro) :] + "\\fR"
            if term:
                section.items.append((line, []))
                term = False
            else:
                if not section.items:
                    section.items.append((None, []))
                section.items[-1][1].append(line)
    return out


def commands_below(manual):
    """(group, words, summary) of each command of the section COMMANDS, whose terms are as "tensorsmith-db-info (1)"."""
    section, group = manual.get("COMMANDS", Section("COMMANDS")), ""
    for i, (term, lines) in enumerate(section.items):
        group = section.groups.get(i, group)
        if term:
            yield group, plain(term).split()[0].split("-", 1)[1], inline(" ".join(lines))


def text_of(section):
    return inline(" ".join(line for _, lines in section.items for line in lines))


def definitions(section):
    """A list of terms, each beside its description where there is room."""
    yield '<dl class="options">'
    for i, (term, lines) in enumerate(section.items):
        if i in section.groups:
            yield f"</dl>\n<p><strong>{inline(section.groups[i])}</strong></p>\n" + '<dl class="options">'
        if term:
            yield f"<dt>{inline(term)}</dt><dd>{inline(' '.join(lines))}</dd>"
    yield "</dl>"


def anchor(words):
    return "-".join(["tensorsmith", *words])


def command(manual, words, out):
    """Adds the section of one command; `words` follow "tensorsmith"."""
    depth = 2 if len(words) < 2 else 3
    out.append(f'<a id="{anchor(words)}"></a>\n\n{"#" * depth} {" ".join(words)}\n')
    out.append(f"{text_of(manual['DESCRIPTION'])}\n")
    usage = ""
    for line in (line for _, lines in manual["SYNOPSIS"].items for line in lines):
        usage += ("\n" if line.startswith("\\fB") else " ") + plain(line)
    usage = usage.strip()
    out.append(f"```text\n{usage}\n```\n")
    if "EXAMPLES" in manual:
        lines = [plain(line) for _, lines in manual["EXAMPLES"].items for line in lines]
        shown = [line.strip() for line in lines if line.startswith("  ")]
        out.append("Examples:\n\n```text\n" + "\n".join(shown) + "\n```\n")
    for name in ("ARGUMENTS", "OPTIONS"):
        if name in manual:
            out.append(f"{name.capitalize()}:\n\n" + "\n".join(definitions(manual[name])) + "\n")


def overview(manual):
    """A table of the commands for each group of them."""
    last = None
    for group, name, summary in commands_below(manual):
        if group != last:
            yield f"\n{inline(group).rstrip(':')}:\n" if group else ""
            yield "| command | does |\n|---|---|"
        last = group
        yield f"| [{name}](#{anchor([name])}) | {summary.replace('|', '&#124;')} |"


def commands_page(program):
    def manual_of(words):
        return sections(subprocess.run([program, "man", *words], check=True, capture_output=True, text=True).stdout)

    top = manual_of([])
    out = ["# Commands\n", f"{text_of(top['DESCRIPTION'])}\n", "\n".join(overview(top)) + "\n"]
    out.append("[What all commands share](../docs/using.md): models, shapes, threads, databases, output files.\n")
    out.append(f"Exit status: {text_of(top['EXIT STATUS'])}\n")

    def add(words):
        manual = manual_of(words)
        command(manual, words, out)
        for _, name, _ in commands_below(manual):
            # "db-info", or "info" where names below "db" have no prefix
            add([*words, name.removeprefix("-".join(words) + "-")])

    for _, name, _ in commands_below(top):
        add([name])
    return "\n".join(out)


def add_features(program, page):
    """Adds the table of each schema to the page about features."""
    listed = subprocess.run([program, "dataset", "schema"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    tables = [
        subprocess.run([program, "dataset", "schema", name], capture_output=True, text=True, check=True).stdout
        for name in names
    ]
    page.write_text(page.read_text(encoding="utf-8") + "\n" + "\n".join(tables), encoding="utf-8")


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    (folder / "commands.md").write_text(commands_page(program), encoding="utf-8")
    add_features(program, folder.parent / "docs" / "features.md")
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
    "compare": "Comparing with other engines",
    "database": "Records",
    "commands": "Commands, training",
    "torch_export": "Programs of torch",
    "torch_backend": "torch.compile",
    "errors": "Errors",
}

if __name__ == "__main__":
    main()
