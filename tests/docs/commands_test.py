"""Executes the commands of README.md and docs/*.md, except those that commands.txt lists with a reason.
commands_test.py PROGRAM SOURCE

Each page has a folder of its own with the files that its commands name: a small model in the place of every model, a few rows in the
place of every data set. `troupe` is the program with 2 steps in the place of a run's, small batches and a free port."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import commands  # noqa: E402

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TABLE = os.path.join(SOURCE, "tests/docs/commands.txt")
STORIES = os.path.join(SOURCE, "tests/data/models/stories260k/hf")

WRAPPER = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
def has(name):
    return any(word.startswith(name + "=") for word in words)
def put(name, value):
    if not has(name):
        words.extend(["--set", f"{name}={value}"])
if "train" in words[:1]:
    last = int(words[words.index("--profile-step-end") + 1]) if "--profile-step-end" in words else 2
    if "--steps" in words:
        words[words.index("--steps") + 1] = str(last)
    else:
        words += ["--steps", str(last)]
    put("train.batch_size", 4)
    put("train.threads", 1)
    words = ["rollout.max_new_tokens=8" if word.startswith("rollout.max_new_tokens=") else word for word in words]
if "--port" in words:
    words[words.index("--port") + 1] = "0"
os.execv(PROGRAM, [PROGRAM, *words])
"""

PAIRS = [{"prompt": f"Tell me {i}", "chosen": " a story.", "rejected": " no."} for i in range(8)]
PROMPTS = [{"prompt": f"One day {i}", "answer": "7"} for i in range(8)]
ROWS = [{"prompt": f"One day {i}", "completion": " they went home."} for i in range(8)]
GRPO = "algorithm: grpo\nmodel: DIR\noutput: runs/grpo-file\nreward: exact_match\ndata: {path: prompts.jsonl}\n" \
       "grpo: {group_size: 2, beta: 0.1}\nrollout: {max_new_tokens: 4}\ntrain: {batch_size: 4}\n"
SFT = "algorithm: sft\nmodel: DIR\noutput: runs/sft-file\ndata: {path: rows.jsonl}\ntrain: {batch_size: 4}\n"
FILES = {
    "rows.jsonl": ROWS, "pairs.jsonl": PAIRS, "prompts.jsonl": PROMPTS, "problems.jsonl": PROMPTS, "held-out.jsonl": PROMPTS,
    "train.jsonl": PROMPTS, "test.jsonl": PROMPTS, "enwiki.jsonl": [{"text": "A page."}, {"text": "Another one."}],
    "run.yaml": SFT, "grpo.yaml": GRPO,
}
# What the commands of a page mean by the same names.
PAGE_FILES = {"docs/reward-models.md": {"held-out.jsonl": PAIRS}, "docs/parallelism.md": {"run.yaml": GRPO}}
MODELS = ["DIR", "BASE", "path/to/model", "models/Qwen2.5-0.5B", "models/Qwen2.5-7B"]
# What has to be there before the commands of a page.
BEFORE = {
    "docs/formats.md": ["troupe train --algorithm sft --model BASE --data rows.jsonl --output runs/lora --set lora.rank=2",
                        "rm -r DIR; ln -s runs/lora/latest DIR"],
    "docs/ppo.md": ["troupe train --algorithm orm --model DIR --data pairs.jsonl --output runs/orm"],
}


class Workspace:
    """The folder of a page."""

    def __init__(self, folder, page):
        self.folder = folder
        self.path = os.path.join(folder, "bin")
        os.makedirs(self.path)
        self.write("bin/troupe", WRAPPER.replace("PROGRAM", repr(PROGRAM)))
        os.chmod(os.path.join(self.path, "troupe"), 0o755)
        os.makedirs(os.path.join(folder, "build/release"))
        os.symlink(os.path.join(self.path, "troupe"), os.path.join(folder, "build/release/troupe"))
        os.symlink(os.path.join(SOURCE, "launch"), os.path.join(folder, "launch"))
        os.symlink(os.path.join(SOURCE, "launch/quickstart"), os.path.join(folder, "quickstart"))
        os.makedirs(os.path.join(folder, "data"))
        for name in MODELS:
            target = os.path.join(folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copytree(STORIES, target)
        for name, content in {**FILES, **PAGE_FILES.get(page, {})}.items():
            self.write(name, content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def environment(self):
        return dict(
            os.environ, PATH=self.path + ":" + os.environ["PATH"], HOME=self.folder, OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")

    def start(self, text, **streams):
        return subprocess.Popen(
            ["bash", "-c", "set -e -o pipefail\n" + text], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, text=True,
            start_new_session=True, **streams)

    def run(self, text):
        """The status and what is printed."""
        process = self.start(text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            out, _ = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, "it does not end: " + process.communicate()[0]
        return process.returncode, out

    def serve(self, text):
        """The same of a server: from its start to its answer to a signal."""
        process = self.start("exec " + text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        begin, deadline = "", time.monotonic() + 60
        while "\nlistening on" not in "\n" + begin:
            ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
            read = os.read(process.stdout.fileno(), 4096).decode() if ready else ""
            if not read:
                os.killpg(process.pid, signal.SIGKILL)
                return -1, begin + process.communicate()[0]
            begin += read
        process.send_signal(signal.SIGUSR1 if text.startswith("mpirun") else signal.SIGTERM)
        try:
            out, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, "it does not end at a signal: " + process.communicate()[0]
        return process.returncode, begin + out


class Commands(unittest.TestCase):
    def test_each_is_executed_or_listed(self):
        table, used = commands.read_table(TABLE), set()
        pages = {}
        for command in commands.all_commands(SOURCE):
            entry = next((i for i, (page, begin, _) in enumerate(table) if page == command.page and command.text.startswith(begin)), None)
            if entry is None:
                pages.setdefault(command.page, []).append(command)
            else:
                used.add(entry)
        self.assertEqual([row for i, row in enumerate(table) if i not in used], [], "entries of commands.txt without a command")
        self.assertGreaterEqual(sum(map(len, pages.values())), 30)
        for page, of_page in pages.items():
            self.execute(page, of_page)

    def execute(self, page, of_page):
        with tempfile.TemporaryDirectory() as folder:
            workspace = Workspace(folder, page)
            for text in BEFORE.get(page, []):
                status, out = workspace.run(text)
                self.assertEqual(status, 0, f"before {page}: {text}\n{out}")
            for command in of_page:
                with self.subTest(command=repr(command)):
                    self.one(workspace, command)

    def one(self, workspace, command):
        ranks = command.text.startswith("mpirun")
        if ranks and shutil.which("mpirun") is None:
            self.skipTest("there is no mpirun")
        begin = time.monotonic()
        is_server = re.match(r"(mpirun -n \d+ )?troupe serve ", command.text)
        status, out = (workspace.serve if is_server else workspace.run)(command.text)
        if "cmake/fetch_arrow.sh" in out:
            self.skipTest("the program is built without Arrow")
        if os.environ.get("TROUPE_SHOW_COMMANDS"):
            print(f"{time.monotonic() - begin:5.1f} s  {command}")
        self.assertEqual(status, 0, f"{command}\n{out}")


class Blocks(unittest.TestCase):
    def texts(self, page):
        return [command.text for command in commands.commands_of("docs/a.md", page)]

    def test_fences_of_shells_and_indented_blocks_have_commands(self):
        for block in ("```\ntroupe info A\n```", "```bash\ntroupe info A\n```", "```console\n$ troupe info A\nusable: yes\n```",
                      "1. As a list:\n\n   ```sh\n   troupe info A\n   ```", "Text\n\n    troupe info A"):
            self.assertEqual(self.texts(block + "\n"), ["troupe info A"], block)
        for block in ("```json\ntroupe info A\n```", "```\nlaunch  ->  algorithms\n```", "troupe info A", "```\n    step 3: x\n```"):
            self.assertEqual(self.texts(block + "\n"), [], block)

    def test_a_command_has_the_lines_that_continue_it(self):
        self.assertEqual(self.texts("```sh\ncurl A -d '{\n  \"a\": 1\n}'\ntroupe x \\\n  --y\n```\n"),
                         ["curl A -d '{\n  \"a\": 1\n}'", "troupe x \\\n  --y"])

    def test_an_unknown_program_in_a_block_of_a_shell_is_an_error(self):
        with self.assertRaises(ValueError):
            self.texts("```sh\nno_such_program x\n```\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
