#!/usr/bin/env python3
"""Checks that help texts can be understood alone: each names its subject, and each sentence says one thing in plain
English.

    help_texts_test.py TENSORSMITH

Reads the summaries, arguments and options of all commands from their manual pages. A text fails if it
- is a single word, or does not begin with a capital letter, a digit, or a name in --, [ or capitals,
- begins with a word that leaves out the subject ("Of each method", "What ranks candidates", "How many"),
- contains a phrase of the list below, which says in plain English what to write instead,
- has a sentence of more than 40 words.
"""
import os
import re
import subprocess
import sys
import tempfile

MOST_WORDS = 40

# First words that replace a missing subject.
WITHOUT_SUBJECT = re.compile(r"(Of|What|Whose|Whom|Which|That|Those|How (?!to|long)|Where|None|Else|Than|But)\b")

# Phrase -> what to write instead.
DIALECT = {
    r"\bof before\b": "earlier",
    r"\bas if\b": "say what is done instead",
    r"\btakes?\b[^.;:]* for an? \w+ that\b": "regards as, or uses as",
    r"\bis no \w+": "is not a",
    r"\bgo(es)? on from\b": "continue from",
    r"\bgoing on\b": "continuing",
    r"\bbegins? so\b": "begins with this text",
    r"\bso many\b": "this many",
    r"\bin turns\b": "alternating",
    r"\b(is|are) told\b": "is reported, is distinguished",
    r"\bflatter": "is too small, is too good",
    r"\bof (its|their) own that\b": "name the thing",
    r"\bmay be given again\b": "(repeatable)",
    r"\bwhat (is|was|were) (measured|done|shipped|there|seen|written)\b": "name the thing: the measurements, the records",
    r"\b(is|are) shipped\b": "comes with Tensorsmith",
    r"\bworth\b": "the error, the speed-up",
}


def plain(roff):
    text = re.sub(r"\\f[BIRP]", "", roff)
    return text.replace(r"\-", "-").replace(r"\e", "\\").replace(r"\(aq", "'").replace(r"\(ga", "`").replace(r"\&", "").strip()


def texts_of(page):
    """Yields (subject, text) for the texts of a manual page."""
    lines = page.split("\n")
    name = ""
    for i, line in enumerate(lines):
        if line == ".SH NAME":
            name = lines[i + 1].split(r" \- ")[0]
            yield plain(name), plain(lines[i + 1].split(r" \- ", 1)[1])
        if line == ".TP" and not lines[i + 1].startswith(".BR"):  # the summary of another command
            text = []
            for more in lines[i + 2 :]:
                if more.startswith("."):
                    break
                if not more.startswith("("):  # properties: default, needs, ...
                    text.append(more)
            yield f"{plain(name)} {plain(lines[i + 1])}", plain(" ".join(text))


def findings(text):
    words = text.split()
    if len(words) < 2:
        yield "is a single word"
    if not re.match(r"[A-Z0-9\[]|--", text):
        yield "does not begin with a capital letter"
    if WITHOUT_SUBJECT.match(text):
        yield f"begins with '{words[0]}' in place of its subject"
    for phrase, better in DIALECT.items():
        if found := re.search(phrase, text, re.IGNORECASE):
            yield f"'{found[0]}' is dialect ({better})"
    for sentence in re.split(r"[.;:](?:\s|$)", re.sub(r"\([^)]*\)", "", text)):
        if len(sentence.split()) > MOST_WORDS:
            yield f"a sentence has more than {MOST_WORDS} words: {sentence.strip()}"


def check_the_checker():
    """Checks that each rule finds its bad examples, and nothing in plain text."""
    for text in (
        "Seed",
        "the seed of the search",
        "Of each method",
        "What ranks candidates",
        "Programs that others compiled as if Tensorsmith had",
        "Take the median error for a factor that all such predictions are off by",
        "File that an interrupted training goes on from",
        "Only tasks whose name begins so",
        "Times of a search flatter its fastest",
        "A text with " + "very " * MOST_WORDS + "many words",
    ):
        assert list(findings(text)), text
    for text in ("Seed of the search", "--seed of the search", "Batch size", "Use only tasks whose name begins with this text"):
        assert not list(findings(text)), (text, list(findings(text)))


def main():
    check_the_checker()
    program = sys.argv[1]
    count, found = 0, []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "man", "--all", folder], check=True)
        for page in sorted(os.listdir(folder)):
            with open(os.path.join(folder, page), encoding="utf-8") as file:
                for place, text in texts_of(file.read()):
                    count += 1
                    found += [f"{place}: {finding}: {text}" for finding in findings(text)]
    assert count > 300, count
    print("\n".join(sorted(set(found))))
    print(f"{count} texts, {len(set(found))} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
