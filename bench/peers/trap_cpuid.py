#!/usr/bin/env python3
"""Replaces CPUID in shared libraries by UD2, so that limit_isa.c can answer it on processors that cannot make it
fault (AMD).

  trap_cpuid.py VENV

Patches every CPUID of all libraries under VENV, since the instruction does not tell which leaf it will ask for. Both
instructions have two bytes; objdump finds the instructions, as the same bytes also occur inside others. A patched
library only runs with liblimit_isa.so preloaded, so VENV must be a virtual environment for this purpose alone. A
second run changes nothing.
"""
import pathlib
import re
import subprocess
import sys

CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"


def sections(library):
    """Yields the address, size and file offset of each section with code."""
    text = subprocess.run(["objdump", "-h", "-w", library], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if "CODE" in line and len(fields) > 6:
            yield int(fields[3], 16), int(fields[2], 16), int(fields[5], 16)


def trap(library):
    """Replaces the instructions in the file `library` and returns their number."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], check=True, capture_output=True, text=True).stdout
    found = [int(address, 16) for address in re.findall(r"^\s*([0-9a-f]+):\s+cpuid\b", listing, re.MULTILINE)]
    if not found:
        return 0
    code = bytearray(library.read_bytes())
    ranges = list(sections(library))
    for address in found:
        start, _, offset = next(r for r in ranges if r[0] <= address < r[0] + r[1])
        place = address - start + offset
        if code[place:place + 2] != CPUID:
            sys.exit(f"error: {library}: no CPUID at offset {place:#x}")
        code[place:place + 2] = UD2
    whole = library.with_name(library.name + ".trapped")
    whole.write_bytes(code)
    whole.chmod(library.stat().st_mode)
    whole.replace(library)
    return len(found)


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    for library in sorted(pathlib.Path(sys.argv[1]).rglob("*.so*")):
        if library.is_symlink() or not library.is_file() or library.open("rb").read(4) != b"\x7fELF":
            continue
        count = trap(library)
        if count:
            print(f"{library.name}: {count} CPUID instructions", file=sys.stderr)


if __name__ == "__main__":
    main()
