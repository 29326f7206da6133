"""Runs published scripts of MindSpeed-LLM with bash, changed in their paths and sizes alone.

Usage: bash_scripts.py TROUPE FOLDER [--only TEXT] [--sample N]. FOLDER has VERSION/examples/... with
the scripts and VERSION.jsonl with the commands that each starts (scripts.py). The value of a flag
is replaced in the text where run_scripts.py replaces it in the command; everything else, arrays,
continued lines, `source` of files that are not there and `| tee`, is as published. A script runs in
an empty folder, with megatron/ beside TROUPE first in PATH. It passes if it left what
run_scripts.py asks of its command. --sample N runs every N-th. The exit code is 1 if a script does
not, and 77 without mpirun.
"""

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile

import inputs
import run_scripts
import scripts

VALUE = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s\\"']+)"""


def changed(text, before, after, ranks):
    """The text of a script with the values of flags that differ between the two."""
    wanted = {"nproc_per_node": [str(ranks)], "nproc-per-node": [str(ranks)], "nnodes": ["1"],
              "node_rank": ["0"], "master_addr": ["localhost"], "master_port": ["6001"]}
    wanted.update({name: values for name, values in after.items() if before.get(name) != values})

    def replace(found):
        values = wanted.get(found[1]) or wanted.get(found[1].replace("_", "-"))
        if values is None:
            return found[0]
        return f"--{found[1]} " + " ".join(map(shlex.quote, values))

    return re.sub(rf"--([a-z][\w-]*)((?:[ \t]+(?!-){VALUE})+)", replace, text)


class BashRunner(run_scripts.Runner):
    """Starts the script of a command in place of the command itself."""

    def __init__(self, troupe, root, texts):
        super().__init__(troupe, root)
        self.texts = texts

    def start(self, command, ranks, flags, folder, text=""):
        script = self.texts[command.version, command.script]
        before = scripts.program_of(command.words)[1]
        original = run_scripts.replaced.read_flags(before)
        os.makedirs(folder + "/logs", exist_ok=True)
        path = folder + "/script.sh"
        added = {name for name in flags if name not in original}
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed(script, original, flags, ranks))
        if added:
            raise inputs.Failed(f"flags that the script does not have: {sorted(added)}")
        links = os.path.join(os.path.dirname(self.troupe), "megatron")
        return inputs.run(["env", f"PATH={links}:{os.environ['PATH']}", "bash", path], folder, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=1)
    options = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("mpirun is not installed")
        return 77
    files = sorted(f"{options.folder}/{name}" for name in os.listdir(options.folder)
                   if name.endswith(".jsonl"))
    commands, texts = [], {}
    for command in run_scripts.read_commands(files, options.only):
        path = f"{options.folder}/{command.version}/{command.script}"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                texts[command.version, command.script] = file.read()
            commands.append(command)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="troupe-scripts-") as root:
        runner = BashRunner(options.troupe, root, texts)
        commands = commands[::options.sample]
        for command in commands:
            problems = runner.problems_of(command)
            failed += bool(problems)
            print(f"{command.version} {command.script}", *(problems or ["ran"]), sep="\n    ",
                  flush=True)
    print(f"{len(commands) - failed} of {len(commands)} scripts ran")
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
