"""The commands of the documentation: those in fenced blocks of any language of a shell or none, and in indented blocks.

A command is a line that begins with the name of a program, with the lines that continue it. commands.txt lists those that
commands_test.py does not execute, with the reason:

    docs/models.md | hf download | needs the network

The second column is the beginning of the command. All others are executed. An entry without a command is an error."""
import os
import re

FENCE = re.compile(r"( *)(```+|~~~+)(\S*)\s*$")
SHELLS = {"", "sh", "bash", "console", "shell"}
# The first word of a command, behind a prompt and variables.
COMMAND = re.compile(
    r"(?:\$ )?(?:[A-Z_]+=\S+ +)*(?:\(umask|troupe|(?:build/release/|venv/bin/|launch/|tests/|cmake/)\S+|mpirun|curl|python3|pip|hf|podman|docker"
    r"|cmake|ctest|ninja|cd|cp|tar|apt|apt-get|xargs|source|openssl|git|bash|sh|kill|export|mkdir|cat|echo|salloc|sbatch|srun)(?: |$)"
)


class Command:
    def __init__(self, page, line, block, text):
        self.page, self.line, self.block, self.text = page, line, block, text

    def __repr__(self):
        return f"{self.page}:{self.line}: {self.text}"


def blocks_of(page, text):
    """(line, language, lines) of the fenced and indented blocks."""
    lines, out, at = text.split("\n"), [], 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = at + 1
            while lines[end].strip() != fence[2]:
                end += 1
            out.append((at + 2, fence[3], [line[len(fence[1]):] for line in lines[at + 1 : end]]))
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            out.append((at + 1, "", [line[4:] for line in lines[at:end]]))
            at = end
        else:
            at += 1
    return [(line, language, block) for line, language, block in out if language in SHELLS]


def is_open(text):
    """Whether a quotation of the command goes on in the next line."""
    return text.endswith("\\") or re.sub(r"\\.", "", text).count("'") % 2 == 1


def commands_of(page, text):
    out = []
    for line, language, block in blocks_of(page, text):
        at = 0
        while at < len(block):
            begin, word = at, block[at]
            at += 1
            if not COMMAND.match(word):
                # A block of a shell has commands only, comments and what a console prints.
                if language in ("sh", "bash") and word.strip() and not word.startswith("#"):
                    raise ValueError(f"{page}:{line + begin}: no known program begins this line: {word}")
                continue
            while is_open(word) and at < len(block):
                word += "\n" + block[at]
                at += 1
            out.append(Command(page, line + begin, line, word.removeprefix("$ ")))
    return out


def all_commands(root):
    pages = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(root, "docs")) if name.endswith(".md"))
    out = []
    for page in pages:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            out += commands_of(page, file.read())
    return out


def read_table(path):
    """[(page, beginning, reason)]."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" | ") for line in file if line.strip() and not line.startswith("#")]
    for row in rows:
        if len(row) != 3:
            raise ValueError(f"{path}: expected PAGE | BEGINNING | REASON, found {' | '.join(row)}")
    return rows
