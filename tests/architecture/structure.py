#!/usr/bin/env python3
"""The rules for single files, functions and statements: structure.py RULE ROOT. Prints what breaks RULE and exits with 1.
Rules: own-header, commas, errors, columns, functions, friends, ties."""
import os
import re
import sys

import source

MAX_LINES, MAX_PARAMETERS, MAX_COLUMNS, MAX_FRIENDS = 40, 8, 100, 6
PRODUCT = source.FOLDERS[:5]


def own_header(root):
    """Each .cpp has a header of its name in its folder. Exempt: main, kernels per instruction set, tests, benchmarks, and the model
    families, which are entries of the table in families.h."""
    for path in source.files(root, PRODUCT):
        name = os.path.basename(path)
        if path.endswith(".h") or name == "main.cpp" or re.match(r"isa_\w+\.cpp$", name):
            continue
        if path.startswith("engine/models/families/"):
            continue
        if not os.path.exists(os.path.join(root, path[:-4] + ".h")):
            yield f"{path}: has no header {name[:-4]}.h in its folder; move it into the file whose header it implements"


def commas(root):
    for path in source.files(root):
        for event in source.walk(source.read(root, path)):
            if event[0] == "statement" and source.is_comma_chain(event[2]):
                yield f"{path}:{event[1]}: statements joined by commas; write one statement each: {' '.join(event[2].split())[:80]}"


def errors(root):
    for path in source.files(root):
        for number, line in enumerate(source.read(root, path).split("\n"), 1):
            if re.search(r"return fail\([\w.>*()-]*error\(\)\)", line):
                yield f"{path}:{number}: use RETURN_IF_ERROR(x), or fail(x) after clean-up (engine/base/error.h)"


def columns(root):
    """Raw strings hold other languages, which cannot be wrapped."""
    raw = re.compile(r'R"([^(\s]*)\((?:.|\n)*?\)\1"')
    for path in source.files(root):
        text = raw.sub(lambda found: "\n" * found.group(0).count("\n"), source.read(root, path))
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MAX_COLUMNS:
                yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"


def functions(root):
    """Tests may hold long tables."""
    for path in source.files(root):
        for event in source.walk(source.read(root, path)):
            if event[0] == "statement":
                continue
            function = event[1]
            if function.parameters > MAX_PARAMETERS:
                yield f"{path}:{function.line}: {function.name} has {function.parameters} parameters, at most {MAX_PARAMETERS}"
            if event[0] == "function" and function.lines > MAX_LINES and path.startswith(PRODUCT):
                yield f"{path}:{function.line}: {function.name} has {function.lines} lines, at most {MAX_LINES}"


def friends(root):
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in source.files(root)
        for number, line in enumerate(source.read(root, path).split("\n"), 1)
        if re.match(r"\s*friend\b", line)
    ]
    if len(found) > MAX_FRIENDS:
        yield f"{len(found)} friend declarations, at most {MAX_FRIENDS}:"
        yield from found


def ties(root):
    """Pairs of folders that include each other, at any depth. Left: the CPU's kernels."""
    includes = {}
    for path in source.files(root, PRODUCT):
        folder = os.path.dirname(path)
        for other in re.findall(r'^#include "([^"]+/[^"]+)"', source.read(root, path), re.M):
            if os.path.dirname(other) != folder:
                includes.setdefault((folder, os.path.dirname(other)), f"{path} includes {other}")
    for a, b in sorted(includes):
        if a < b and (b, a) in includes and not b.startswith("engine/ops/cpu"):
            yield f"{a} <-> {b}: {includes[a, b]}; {includes[b, a]}"


RULES = {
    "own-header": own_header,
    "commas": commas,
    "errors": errors,
    "columns": columns,
    "functions": functions,
    "friends": friends,
    "ties": ties,
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(f"structure.py RULE ROOT; rules: {', '.join(RULES)}")
    broken = list(RULES[sys.argv[1]](sys.argv[2]))
    for line in broken:
        print(line)
    sys.exit(bool(broken))
