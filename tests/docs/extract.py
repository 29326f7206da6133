"""Extracts the worked examples of a page of the documentation, so that tests compile and run what the page says.

A fenced block belongs to the file whose path ends the line above it, in backticks and before a colon:

    The header, `actors/roles/rules/word_limit.h`:

    ```cpp
    #pragma once
    ```

Such a block is a new file of the tree. A block of the language `diff` changes a file that there is, or one of an earlier block. Its
hunks are separated by lines that begin with @@ and have no line numbers: the lines of a hunk that begin with a space or a minus must
stand in the file exactly once. A hunk that no longer applies is an error.

extract.py write ROOT PAGE INTO FILE...   writes the page's files below INTO; FILE... are their names, all of them
extract.py apply ROOT PAGE                writes the page's files into the tree itself
extract.py check ROOT PAGE...             says whether all diffs of the pages apply to the tree
extract.py words ROOT PAGE                prints the paths and identifiers of the page's files, one per line
extract.py places ROOT PAGE COUNT         says whether each section (##) with blocks has them of COUNT files that are no tests
"""
import os
import re
import sys

NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.\w+)`:\s*$")
FENCE = re.compile(r"( *)(```+|~~~+)(\S*)\s*$")


class Stale(Exception):
    """The page and the tree disagree; the message begins with the page."""


class Block:
    def __init__(self, page, line, path, language, lines, section):
        self.where, self.path, self.is_diff, self.lines = f"{page}:{line}", path, language == "diff", lines
        self.section = section


def blocks_of(root, page):
    """The named blocks of the page, in their order."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        lines = file.read().splitlines()
    out, above, section, at = [], "", "", 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            section = lines[at][3:] if lines[at].startswith("## ") else section
            above = lines[at] if lines[at].strip() else above
            at += 1
            continue
        indent, marks, language = fence.groups()
        begin = at + 1
        end = begin
        while end < len(lines) and lines[end].strip() != marks:
            end += 1
        if end == len(lines):
            raise Stale(f"{page}:{at + 1}: this block does not end")
        named = NAMED.search(above)
        if named:
            body = [line[len(indent):] if line.startswith(indent) else line.lstrip() for line in lines[begin:end]]
            out.append(Block(page, at + 1, named.group(1), language, body, section))
        above, at = "", end + 1
    return out


def hunks_of(block):
    """(lines before, lines after) of every hunk."""
    hunks = [([], [])]
    for line in block.lines:
        if line.startswith("@@"):
            hunks.append(([], []))
            continue
        mark, text = line[:1] or " ", line[1:]
        if mark not in " +-":
            raise Stale(f"{block.where}: a line of a diff begins with a space, + or -, not with {line!r}")
        if mark in " -":
            hunks[-1][0].append(text)
        if mark in " +":
            hunks[-1][1].append(text)
    return [hunk for hunk in hunks if hunk != ([], [])]


def patched(block, text):
    """The text after the block's diff."""
    lines = text.split("\n")
    for before, after in hunks_of(block):
        found = [i for i in range(len(lines) - len(before) + 1) if lines[i : i + len(before)] == before] if before else []
        if len(found) != 1:
            shown = "\n".join("    " + line for line in before)
            raise Stale(f"{block.where}: the diff of {block.path} does not apply: these lines stand in it {len(found)} times, not once:\n{shown}")
        lines[found[0] : found[0] + len(before)] = after
    return "\n".join(lines)


def files_of(root, page):
    """{path: text} of the files that the page adds or changes."""
    files = {}
    for block in blocks_of(root, page):
        in_tree = os.path.join(root, block.path)
        if block.is_diff:
            if block.path not in files:
                if not os.path.exists(in_tree):
                    raise Stale(f"{block.where}: there is no {block.path} to change")
                with open(in_tree, encoding="utf-8") as file:
                    files[block.path] = file.read()
            files[block.path] = patched(block, files[block.path])
        elif block.path in files or os.path.exists(in_tree):
            raise Stale(f"{block.where}: {block.path} is there already; show a diff of it")
        else:
            files[block.path] = "".join(line + "\n" for line in block.lines)
    return files


def write_files(files, into):
    for path, text in files.items():
        target = os.path.join(into, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)


def write(root, page, into, names):
    files = files_of(root, page)
    for name in names:
        if name not in files:
            raise Stale(f"{page} has no block of the file {name}")
    for path in files:
        if path not in names:
            raise Stale(f"{page} has a block of the file {path}, which tests/docs/CMakeLists.txt does not list")
    write_files(files, into)


def places(root, page, count):
    found = {}
    for block in blocks_of(root, page):
        of_section = found.setdefault(block.section, set())
        if not block.path.startswith("tests/"):
            of_section.add(block.path)
    for section, paths in found.items():
        if len(paths) != count:
            raise Stale(f"{page}: {section}: changes {len(paths)} files of the product, not {count}: {', '.join(sorted(paths))}")


def words(root, page):
    for block in blocks_of(root, page):
        print(block.path)
        print(os.path.basename(block.path))
        print("\n".join(sorted(set(re.findall(r"[A-Za-z_]\w*", "\n".join(block.lines))))))


def main(arguments):
    verb, root, *rest = arguments
    try:
        if verb == "write":
            write(root, rest[0], rest[1], rest[2:])
        elif verb == "apply":
            write_files(files_of(root, rest[0]), root)
        elif verb == "words":
            words(root, rest[0])
        elif verb == "places":
            places(root, rest[0], int(rest[1]))
        elif verb == "check":
            for page in rest:
                files_of(root, page)
        else:
            sys.exit(__doc__)
    except Stale as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
