#!/usr/bin/env python3
"""Ranks and engine threads that hang: hangs.py PROGRAM SOURCE short|long [CASE...]

Stops a rank (SIGSTOP) or one thread of a process (ptrace, as a deadlock would) of a GRPO run in one process, under mpirun and under
launch. The run must name it within the time until a warning and 10 s, and end with exit code 8 and that name within 10 s of its
deadline. Also a run whose steps take long, which must not warn. Prints a line per case; exits with 1 on failure.

long: the program's own 20 s until a warning, deadlines of 40 s, steps of 60 s. short: 2 s, 8 s and 8 s, for continuous integration.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, SOURCE, LENGTH = sys.argv[1:4]
WARN, DEADLINE, LONG_STEP = (20, 40, 60) if LENGTH == "long" else (2, 8, 8)
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

SETTINGS = [
    "--algorithm", "grpo", "--set", f"model={SOURCE}/launch/quickstart/model", "--set", f"data.path={SOURCE}/launch/quickstart/train.jsonl",
    "--set", "train.steps=100000", "--set", "train.save_every=0", "--set", "train.batch_size=8", "--set", "train.max_length=64",
    "--set", "train.threads=1", "--set", "grpo.beta=0.1", "--set", "grpo.group_size=4", "--set", "rollout.max_new_tokens=12",
    "--set", "reward=[{rule: exact_match}]"]
REQUEST = ["--set", f"train.timeout={DEADLINE}"]  # parallel.timeout stays at 600
EXCHANGE = ["--set", f"parallel.timeout={DEADLINE}"]  # train.timeout stays at 3600
CLUSTER = "groups: [{role: policy, parallel: {dp: 2}}, {role: reference}, {role: rollout}, {role: verifier}]\n"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]


def stop_thread(thread):
    """Stops one thread until this process ends."""
    if libc.ptrace(PTRACE_SEIZE, thread, None, None) != 0 or libc.ptrace(PTRACE_INTERRUPT, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def reap(thread):
    """A traced thread that was killed stays until its tracer has waited for it, and its process with it."""
    try:
        os.waitpid(thread, os.WNOHANG | WALL)
    except ChildProcessError:
        pass


def threads_of(process):
    found = {}
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/comm") as file:
            found.setdefault(file.read().strip(), []).append(int(thread))
    return found


def processes(mark):
    """Those of a run, by their mark in the environment, with the rank and the name of the group, if it is known."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = dict(each.split(b"=", 1) for each in file.read().split(b"\0") if b"=" in each)
            with open(f"/proc/{name}/comm") as file:
                program = file.read().strip()
        except OSError:
            continue
        if variables.get(b"TROUPE_HANGS") == mark.encode():
            rank = variables.get(b"OMPI_COMM_WORLD_RANK")
            found.append((int(name), program, int(rank) if rank and program == "troupe" else None))
    return found


def write_rows(path, count):
    """Rows of 512 tokens and more."""
    with open(f"{SOURCE}/tests/data/datasets/pretrain/tinystories_train.txt") as file:
        text = file.read()
    with open(path, "w") as file:
        for row in range(count):
            begin = row * 1400 % (len(text) - 1500)
            file.write(json.dumps({"prompt": "Story: ", "completion": text[begin:begin + 1500]}) + "\n")


class Run:
    def __init__(self, case):
        self.traced = None
        self.folder = tempfile.mkdtemp()
        self.output = f"{self.folder}/run"
        self.mark = f"{os.getpid()}-{case['name']}"
        self.log = f"{self.folder}/log"
        command = self.command(case)
        environment = dict(os.environ, TROUPE_HANGS=self.mark)
        if LENGTH != "long":
            environment["TROUPE_TEST_WARN_AFTER_MS"] = str(WARN * 1000)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True)

    def command(self, case):
        settings = case.get("all", SETTINGS) + ["--set", f"output={self.output}"] + case.get("settings", [])
        if "rows" in case:
            write_rows(f"{self.folder}/rows.jsonl", case["rows"])
            settings += ["--set", f"data.path={self.folder}/rows.jsonl", "--set", f"train.batch_size={case['rows']}"]
        if case["placement"] == "launch":
            with open(f"{self.folder}/cluster.yaml", "w") as file:
                file.write(CLUSTER)
            return [PROGRAM, "launch", "--cluster", f"{self.folder}/cluster.yaml", "--", "train", *settings]
        ranks = MPIRUN if case["placement"] == "mpirun" else []
        return [*ranks, PROGRAM, "train", *settings]

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def steps(self):
        try:
            with open(f"{self.output}/metrics.jsonl") as file:
                return sum(1 for line in file if "step" in json.loads(line))
        except (OSError, ValueError):
            return 0

    def wait_for_steps(self, count):
        end = time.monotonic() + 300
        while self.steps() < count:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no {count} steps:\n{self.text()[-3000:]}")
            time.sleep(0.05)

    def group(self, name, rank):
        """The process of a rank of a group of launch, by the line with which its leader says that it is ready."""
        with open(f"{self.output}/logs/{name}.log", errors="replace") as file:
            leader = int(re.findall(r"process (\d+) is ready", file.read())[-1])
        if rank == 0:
            return leader
        with open(f"/proc/{leader}/stat") as file:
            parent = file.read().rsplit(")", 1)[1].split()[1]
        for process, program, number in processes(self.mark):
            with open(f"/proc/{process}/stat") as file:
                if number == rank and file.read().rsplit(")", 1)[1].split()[1] == parent:
                    return process
        raise RuntimeError(f"no rank {rank} of {name}")

    def victim(self, case):
        if case["placement"] == "process":
            return self.process.pid
        if case["placement"] == "launch":
            return self.group(case["group"], case.get("rank", 0))
        return next(process for process, _, rank in processes(self.mark) if rank == case["rank"])

    def end(self):
        for process, _, _ in processes(self.mark):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while self.process.poll() is None:
            if self.traced:
                reap(self.traced)
            time.sleep(0.05)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def hang(case):
    """What is wrong, or None."""
    run = Run(case)
    try:
        run.wait_for_steps(3)
        victim = run.victim(case)
        traced = None
        if case.get("thread"):
            traced = threads_of(victim)[case["thread"]][0] if case["thread"] != "main" else victim
            run.traced = traced
            stop_thread(traced)
        else:
            os.kill(victim, signal.SIGSTOP)
        began = time.monotonic()
        named = None
        while run.process.poll() is None and time.monotonic() < began + DEADLINE + 60:
            if named is None and re.search(case["named"], run.text()):
                named = time.monotonic() - began
            if traced:
                reap(traced)
            time.sleep(0.1)
        ended, code = time.monotonic() - began, run.process.poll()
        if named is None and re.search(case["named"], run.text()):
            named = ended
        last = [line for line in run.text().splitlines() if re.search(r"troupe: | E ", line)]
        print(f"{case['name']}: named after {'no time' if named is None else f'{named:.1f} s'}, ended after {ended:.1f} s with {code}", flush=True)
        for line in last[-2:]:
            print(f"    {line[:400]}", flush=True)
        wrong = []
        if named is None or named > WARN + 10:
            wrong.append(f"not named within {WARN + 10} s: {case['named']}")
        if code != case.get("code", 8):
            wrong.append(f"it ended with {code}")
        if not case.get("earlier") and not DEADLINE - 3 <= ended <= DEADLINE + 10:
            wrong.append(f"it did not end within 10 s of the deadline of {DEADLINE} s")
        if not case.get("earlier") and not any(re.search(case["cause"], line) for line in last):
            wrong.append(f"no cause was printed: {case['cause']}")
        return wrong and "; ".join(wrong) + "\n" + run.text()[-6000:]
    finally:
        run.end()


def long_step(case):
    """A step that lasts LONG_STEP must not warn. A step that a faster machine ends sooner is given more rows."""
    rows = case["rows"]
    for _ in range(5):
        run = Run({**case, "rows": rows})
        try:
            began = time.monotonic()
            run.wait_for_steps(1)
            took = time.monotonic() - began
            print(f"{case['name']}: {rows} rows, the step took {took:.1f} s", flush=True)
            if re.search("made no progress", run.text()):
                return "it warned:\n" + run.text()[-3000:]
        finally:
            run.end()
        if took >= LONG_STEP:
            return None
        rows = int(rows * max(1.3, 1.3 * LONG_STEP / took))
    return f"no step lasted {LONG_STEP} s, the last one with {rows} rows"



SFT = ["--algorithm", "sft", "--set", f"model={SOURCE}/tests/data/models/stories260k/hf", "--set", "train.steps=1", "--set", "train.threads=1",
       "--set", "train.max_length=512", "--set", "train.save_every=0"]
# One update of so many rows that it takes longer than the time until a warning.
LONG_STEPS = [
    {"name": "process, a long step", "placement": "process", "all": SFT, "rows": 1600 if LENGTH == "long" else 250},
    {"name": "mpirun, a long step", "placement": "mpirun", "all": SFT, "rows": 2400 if LENGTH == "long" else 400, "settings": ["--set", "parallel.dp=2"]},
]
THREAD = r"(process|policy|rollout|reference)\S*/\S* \(thread \d+, stopped by a debugger\) has made no progress for \d+ s"
CASES = [
    {"name": "process, rollout", "short": True, "placement": "process", "thread": "process/rollout", "settings": REQUEST + ["--set", "rollout.threads=1"]},
    {"name": "process, policy and reference", "placement": "process", "thread": "process/engine", "settings": REQUEST + ["--set", "rollout.threads=1"]},
    {"name": "process, rank 1 as a thread", "short": True, "placement": "process", "thread": "rank 1", "settings": EXCHANGE + ["--set", "parallel.dp=2"],
     "named": r"rank 1.* has made no progress", "cause": r"waited \d+ s for rank 1 of 2"},
    {"name": "mpirun, rank 1", "short": True, "placement": "mpirun", "rank": 1, "settings": EXCHANGE + ["--set", "parallel.dp=2"],
     "named": r"rank 1 \(process \d+, stopped by SIGSTOP\) has made no progress", "cause": r"waited .* for rank 1 "},
    {"name": "mpirun, rank 0", "placement": "mpirun", "rank": 0, "settings": EXCHANGE + ["--set", "parallel.dp=2"],
     "named": r"rank 0 \(process \d+, stopped by SIGSTOP\) has made no progress", "cause": r"waited .* for rank 0 "},
    {"name": "mpirun, rank 1, train.timeout", "placement": "mpirun", "rank": 1, "settings": REQUEST + ["--set", "parallel.dp=2"],
     "named": r"rank 1 \(process \d+, stopped by SIGSTOP\) has made no progress", "cause": r"did not answer .*rank 1 .*no progress"},
    {"name": "mpirun, thread of rank 0", "placement": "mpirun", "rank": 0, "thread": "process/engine", "settings": REQUEST + ["--set", "parallel.dp=2"]},
    {"name": "mpirun, thread of rank 1", "short": True, "placement": "mpirun", "rank": 1, "thread": "main", "settings": REQUEST + ["--set", "parallel.dp=2"],
     "named": r"rank 1.* has made no progress", "cause": r"did not answer .*rank 1 .*no progress"},
    {"name": "launch, rank 1 of the policy", "short": True, "placement": "launch", "group": "policy", "rank": 1, "settings": EXCHANGE,
     "named": r"policy: rank 0: rank 1 \(process \d+, stopped by SIGSTOP\) has made no progress", "cause": r"waited .* for rank 1 "},
    {"name": "launch, rank 1 of the policy, train.timeout", "placement": "launch", "group": "policy", "rank": 1, "settings": REQUEST,
     "named": r"policy: rank 0: rank 1 \(process \d+, stopped by SIGSTOP\) has made no progress", "cause": r"did not answer .*rank 1 .*no progress"},
    {"name": "launch, rank 0 of the policy", "placement": "launch", "group": "policy", "rank": 0, "settings": REQUEST, "code": 11, "earlier": True,
     "named": r"policy .*was lost: "},
    {"name": "launch, thread of the policy", "placement": "launch", "group": "policy", "thread": "policy/engine", "settings": REQUEST},
    {"name": "launch, thread of the reference", "short": True, "placement": "launch", "group": "reference", "thread": "reference/engin", "settings": REQUEST},
    {"name": "launch, thread of the rollout", "placement": "launch", "group": "rollout", "thread": "rollout/engine", "settings": REQUEST},
]


def main():
    wanted = sys.argv[4:]
    failed = False
    for case in CASES:
        if wanted and case["name"] not in wanted:
            continue
        if not wanted and LENGTH != "long" and not case.get("short"):
            continue
        if case["placement"] != "process" and not shutil.which("mpirun"):
            print(f"{case['name']}: mpirun is not installed")
            continue
        case.setdefault("named", THREAD)
        # A thread that is stopped while it holds a lock, such as one of malloc's, stops the one that has the deadline too.
        case.setdefault("cause", r"(did not answer|the run cannot continue:) .*" + THREAD)
        wrong = hang(case)
        if wrong:
            failed = True
            print(f"WRONG: {case['name']}: {wrong}", flush=True)
    for case in LONG_STEPS:
        if wanted and case["name"] not in wanted:
            continue
        wrong = long_step(case)
        if wrong:
            failed = True
            print(f"WRONG: {case['name']}: {wrong}", flush=True)
    return failed


sys.exit(main())
