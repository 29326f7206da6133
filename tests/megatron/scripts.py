"""Which of MindSpeed-LLM's published command lines troupe takes, without running them.

Usage: scripts.py TROUPE FILE... [--list]. A FILE is VERSION.jsonl, a line for each script:
{"script": "examples/...", "commands": [[WORD, ...], ...]}. scripts.tsv gives each script a class;
read are the commands of dense models in examples/mcore. Each is started in an empty folder with
its paths replaced by names that are not there. It is taken if nothing but a missing file ends it;
a flag that is unknown or refused, or a value that is, ends it before a file is looked for. Printed
are the commands taken by version and kind, and how many commands each problem stops; --list also
prints the problems of each script. Every flag of every script, whatever its class, must be one of
`TROUPE flags`. The exit code is 1 if one is not, or if a problem is not among exceptions.txt.
"""

import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
COMMANDS = {
    "pretrain_gpt": "pretrain_gpt", "posttrain_gpt": "posttrain_gpt", "inference": "inference", "evaluation": "evaluation",
    "convert_ckpt": "convert", "convert_ckpt_v2": "convert", "preprocess_data": "preprocess",
}
PATHS = {
    "cache-dir", "data-path", "hf-cfg-dir", "input", "load", "load-dir", "lora-load",
    "output-prefix", "prompt-type-path", "ref-model", "reward-model", "save", "save-dir", "task-data-path",
    "tokenizer-model", "tokenizer-name-or-path",
}
NOT_FOUND = 4


def classes():
    with open(f"{FOLDER}/scripts.tsv", encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table]
    return {(version, script): name for version, script, name in rows}


def exceptions():
    """(version, script) of the scripts that need a feature which troupe lacks, with its name."""
    with open(f"{FOLDER}/exceptions.txt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line[0] not in "#\n"]
    return {(version, script): feature for version, script, feature in rows}


def program_of(command):
    """The script's name without .py, and the words behind it."""
    for at, word in enumerate(command):
        if word.endswith(".py"):
            return os.path.basename(word)[:-3], command[at + 1:]
    return None, []


def kind_of(program, words):
    """The column of the table: pretrain, tune, align, generate, evaluation, convert or preprocess."""
    if program in ("pretrain_gpt", "posttrain_gpt"):
        stage = words[words.index("--stage") + 1] if "--stage" in words else ""
        if stage not in ("", "sft", "pretrain"):
            return "align"
        tunes = stage == "sft" or "--is-instruction-dataset" in words or program != "pretrain_gpt"
        return "tune" if tunes else "pretrain"
    return {"inference": "generate", "preprocess": "preprocess"}.get(program, program)


def with_paths(words):
    """The words with a name that is not there for each path, however many words it has."""
    out, skip = [], False
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name = word[2:].replace("_", "-")
            skip = name in PATHS
            out.append(word)
            if skip:
                out.append("missing-" + name)
        elif not skip:
            out.append(word)
    return out


def problems_of(troupe, command, words, folder):
    """What ends the command beside missing files: a list, empty if it is taken."""
    done = subprocess.run([troupe, command, *with_paths(words)], cwd=folder, text=True, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if done.returncode == NOT_FOUND:
        return []
    lines = [line.removeprefix("troupe: ") for line in done.stderr.splitlines()]
    lines = [line for line in lines if line and not line.startswith("`troupe ")]
    return lines or [f"exit code {done.returncode}"]


def short(problem):
    """A problem without what differs between scripts."""
    return re.sub(r" [^ ]*\d[^ ]*", " N", problem)[:140]


def check(troupe, path, of, allowed):
    """Rows (version, kind, script, command number, problems) of a file."""
    version = os.path.basename(path).removesuffix(".jsonl")
    tasks = []
    with open(path, encoding="utf-8") as scripts:
        for line in scripts:
            script = json.loads(line)
            name = script["script"]
            if of[version, name] != "dense" or not name.startswith("examples/mcore/"):
                continue
            for words in script["commands"]:
                tasks.append((name, *program_of(words)))
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def one(task):
            name, program, rest = task
            if program not in COMMANDS:
                return version, str(program), name, [f"no program {program}"]
            command = COMMANDS[program]
            return (version, kind_of(program if command == program else command, rest), name,
                    problems_of(troupe, command, rest, folder))
        rows = list(pool.map(one, tasks))
    return [row for row in rows if not (row[3] and (version, row[2]) in allowed)], tasks


def unknown_flags(troupe, paths):
    """The flags of all scripts that `troupe flags` does not list; argparse takes beginnings."""
    lines = subprocess.run([troupe, "flags"], text=True, check=True, capture_output=True).stdout
    known = {line.split("\t")[0].replace("_", "-") for line in lines.splitlines()}
    used = set()
    for path in paths:
        with open(path, encoding="utf-8") as scripts:
            commands = [each for line in scripts for each in json.loads(line)["commands"]]
        for words in commands:
            if program_of(words)[0]:
                used |= {word.split("=")[0].replace("_", "-").rstrip(":") for word in words
                         if re.match("--[a-z]", word)}
    unknown = {flag for flag in used - known if sum(each.startswith(flag) for each in known) != 1}
    print(f"{len(used) - len(unknown)} of {len(used)} flags have a class")
    return sorted(unknown)


def report(rows, listed):
    taken, number, stops = collections.Counter(), collections.Counter(), collections.Counter()
    for version, kind, name, problems in rows:
        number[version, kind] += 1
        taken[version, kind] += not problems
        for problem in sorted(set(map(short, problems))):
            stops[problem] += 1
        if listed and problems:
            print(f"{version} {name}", *problems, sep="\n    ")
    for key, count in sorted(number.items()):
        print(f"{key[0]:8} {key[1]:12} {taken[key]:4} of {count:4}")
    for problem, count in stops.most_common():
        print(f"{count:5}  {problem}")


def main():
    arguments = [word for word in sys.argv[1:] if word != "--list"]
    if len(arguments) < 2:
        sys.exit(__doc__)
    of, allowed, rows = classes(), exceptions(), []
    for path in arguments[1:]:
        found, tasks = check(os.path.abspath(arguments[0]), path, of, allowed)
        if len(found) < len(tasks):
            print(f"{path}: {len(tasks) - len(found)} of {len(tasks)} commands are exceptions")
        rows += found
    report(rows, "--list" in sys.argv)
    unknown = unknown_flags(os.path.abspath(arguments[0]), arguments[1:])
    print(*(f"unknown: {flag}" for flag in unknown), sep="\n")
    return bool(unknown) or any(row[3] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
