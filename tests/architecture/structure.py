#!/usr/bin/env python3
"""The rules for single files, functions and statements: structure.py RULE ROOT. Prints what breaks RULE and exits with 1.
Rules: own-header, commas, errors, columns, functions, friends, ties, positional, nested."""
import os
import re
import sys

import source

MAX_LINES, MAX_PARAMETERS, MAX_COLUMNS, MAX_FRIENDS, MAX_POSITIONAL = 40, 8, 100, 6, 6
PRODUCT = source.FOLDERS[:5]


def own_header(root):
    """Each .cpp has a header of its name in its folder, or implements another one there, which it includes first. Exempt: main, kernels
    per instruction set, tests, benchmarks, and the model families, which are entries of the table in families.h."""
    for path in source.files(root, PRODUCT):
        name = os.path.basename(path)
        if path.endswith(".h") or name == "main.cpp" or re.match(r"isa_\w+\.cpp$", name):
            continue
        if path.startswith("engine/models/families/"):
            continue
        if os.path.exists(os.path.join(root, path[:-4] + ".h")):
            continue
        first = re.search(r'^#include "([^"]+)"', source.read(root, path), re.M)
        if not first or os.path.dirname(first[1]) != os.path.dirname(path):
            yield f"{path}: has no header {name[:-4]}.h in its folder, and includes none of its folder first; move it into the file whose header it implements"


def commas(root):
    for path in source.files(root):
        for event in source.walk(source.read(root, path)):
            if event[0] == "statement" and source.is_comma_chain(event[2]):
                yield f"{path}:{event[1]}: statements joined by commas; write one statement each: {' '.join(event[2].split())[:80]}"


def errors(root):
    for path in source.files(root):
        for number, line in enumerate(source.read(root, path).split("\n"), 1):
            if re.search(r"return fail\([\w.>*()-]*error\(\)\)", line):
                yield f"{path}:{number}: use RETURN_IF_ERROR(x), or fail(x) after clean-up (engine/base/errors/error.h)"


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
    """Pairs of folders that include each other, at any depth."""
    includes = {}
    for path in source.files(root, PRODUCT):
        folder = os.path.dirname(path)
        for other in re.findall(r'^#include "([^"]+/[^"]+)"', source.read(root, path), re.M):
            if os.path.dirname(other) != folder:
                includes.setdefault((folder, os.path.dirname(other)), f"{path} includes {other}")
    for a, b in sorted(includes):
        if a < b and (b, a) in includes:
            yield f"{a} <-> {b}: {includes[a, b]}; {includes[b, a]}"


def positional(root):
    """A struct is initialized by the names of its members where it has many. A list of literals, or of one container, is no struct."""
    braces = re.compile(r"\breturn \{|\b(?:[a-z]\w*::)*[A-Z]\w*(?: [a-z]\w*)? ?\{")
    container = re.compile(r"\b(?:std::(?:vector|array|span|set|map)|Ids|Columns|Metrics)\b")
    for path in source.files(root, PRODUCT):
        text = source.code(source.read(root, path))
        headers = [(m.start(), m.group(0)) for m in re.finditer(r"^ {0,2}\S.*\) (?:const )?(?:override )?\{$", text, re.M)]
        for found in braces.finditer(text):
            if re.search(r"\b(?:enum|class|struct) $", text[: found.start()]):
                continue
            begin = end = found.end()
            depth = 1
            while depth and end < len(text):
                depth += (text[end] in "([{") - (text[end] in ")]}")
                end += 1
            values = source.top_level(source.without_angles(text[begin : end - 1]))
            values = [value.strip() for value in values if value.strip()]
            named = any(value.startswith(".") for value in values)
            literals = sum(bool(re.match(r"-?[\d.]|\"|\{", value)) for value in values)
            if len(values) <= MAX_POSITIONAL or named or ";" in text[begin:end] or 2 * literals >= len(values):
                continue
            header = max((h for h in headers if h[0] < found.start()), default=(0, ""))[1]
            if found.group(0) == "return {" and container.search(header.split("(")[0]):
                continue
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path}:{line}: {len(values)} values in braces, at most {MAX_POSITIONAL} without the names of their members"


def nested(root):
    """g++ 12 destroys a member of class type that unnamed braces initialize twice, where a later initializer of the same braces throws and
    the type of the member has default member initializers."""
    for path in source.files(root, PRODUCT):
        text = source.code(source.read(root, path))
        for found in re.finditer(r"[{(,]\s*(\.\w+ = \{)\s*\.", text):
            line = text.count("\n", 0, found.start(1)) + 1
            yield f"{path}:{line}: {found.group(1)}: name the type of the member before its braces"


RULES = {
    "own-header": own_header,
    "commas": commas,
    "errors": errors,
    "columns": columns,
    "functions": functions,
    "friends": friends,
    "ties": ties,
    "positional": positional,
    "nested": nested,
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(f"structure.py RULE ROOT; rules: {', '.join(RULES)}")
    broken = list(RULES[sys.argv[1]](sys.argv[2]))
    for line in broken:
        print(line)
    sys.exit(bool(broken))
