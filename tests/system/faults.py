#!/usr/bin/env python3
"""Faults of the processes of `troupe launch`: faults.py PROGRAM SOURCE short|times|N [SEED]

Each run is 8 steps of the 260K model with a policy, a reference, two rollouts and a verifier (PPO: and a critic). One fault hits one process
at a time that the seed draws. What is expected stands in EXPECTED. Afterwards the weights of `off` and `pinned` are those of the run that
nobody disturbed (SHA-256), `troupe audit` is clean, and no process, socket or shared memory is left.

short: the faults of SHORT, for continuous integration. times: 20 kills of a rollout: how long its samples wait, and its successor.
N: so many faults, drawn from EXPECTED. Prints a line per fault; exits with 1 on failure.
"""
import collections
import ctypes
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

PROGRAM, SOURCE, LENGTH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
STEPS, LIMIT = 8, 300
libc = ctypes.CDLL(None, use_errno=True)
PIDFD_OPEN, PIDFD_GETFD = 434, 438

BASE = ["--set", f"model={SOURCE}/tests/data/models/stories260k/hf", "--set", f"data.path={SOURCE}/launch/quickstart/train.jsonl",
        "--set", f"train.steps={STEPS}", "--set", "train.save_every=3", "--set", "train.batch_size=8", "--set", "train.max_length=128",
        "--set", "train.threads=1", "--set", "rollout.max_new_tokens=64", "--set", "rollout.record=all",
        "--set", "reward=[{rule: exact_match}, {rule: length, max: 20, weight: 0.5}]"]
GRPO = ["--algorithm", "grpo", "--set", "grpo.beta=0.1", "--set", "grpo.group_size=4"]
RUNS = {
    "grpo off": GRPO,
    "grpo pinned": GRPO + ["--set", "async.mode=pinned", "--set", "async.eta=1"],
    "grpo free": GRPO + ["--set", "async.mode=free", "--set", "async.eta=2"],
    "ppo off": ["--algorithm", "ppo", "--set", "ppo.kl_coef=0.1"],
}
GROUPS = "groups: [{role: policy}, {role: reference}, {role: rollout, count: %d}, {role: verifier}%s]\n"

# (fault, process) -> what the run does.
#   continues N: it ends with 0, and N processes were replaced
#   ends CODE: it ends with CODE (or minus the signal); the same command, once more, ends with 0
EXPECTED = {}
for each in ("rollout", "rollout-0", "verifier", "reference"):  # rollout: the only one
    EXPECTED["kill", each] = EXPECTED["stop for 8 s", each] = EXPECTED["stop for 60 s", each] = EXPECTED["reset", each] = "continues 1"
    EXPECTED["stop for 2 s", each] = "continues 0"
for each in ("policy", "critic"):
    EXPECTED["kill", each] = EXPECTED["stop for 8 s", each] = EXPECTED["reset", each] = "ends 11"
    EXPECTED["stop for 2 s", each] = "continues 0"
EXPECTED["kill 4 times", "rollout"] = "ends 13"  # recovery.restarts is 3
EXPECTED["kill", "controller"] = "ends -9"
EXPECTED["stop for 2 s", "controller"] = "continues 0"

SHORT = [("grpo pinned", "kill", "rollout-0"), ("grpo free", "kill", "rollout-0"), ("grpo pinned", "kill", "verifier"),
         ("grpo off", "kill", "reference"), ("grpo pinned", "stop for 8 s", "rollout"), ("grpo free", "stop for 8 s", "verifier"), ("grpo pinned", "kill 4 times", "rollout")]
NOTICED = {"kill": 1, "reset": 2}  # seconds after which a loss is noticed; otherwise 8


def processes(mark):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = f"TROUPE_FAULTS={mark}".encode() in file.read().split(b"\0")
        except OSError:
            continue
        if marked:
            found.append(int(name))
    return found


def reset_connections(process):
    """Ends the connections of a process to the hub, as a network would: shutdown(2) of copies of its sockets."""
    pidfd = libc.syscall(PIDFD_OPEN, process, 0)
    ended = 0
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            if not os.readlink(f"/proc/{process}/fd/{name}").startswith("socket:"):
                continue
        except OSError:
            continue
        copy = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
        if copy < 0:
            continue
        with socket.socket(fileno=copy) as connection:
            try:
                if str(connection.getpeername()).rstrip("\0").endswith("/hub"):
                    connection.shutdown(socket.SHUT_RDWR)
                    ended += 1
            except OSError:
                pass
    os.close(pidfd)
    if ended == 0:
        raise RuntimeError(f"process {process} has no connection to the hub")


class Launch:
    def __init__(self, folder, name, settings, rollouts=2):
        self.output = f"{folder}/{name}"
        self.said = f"{folder}/{name}.log"
        self.mark = f"{os.getpid()}-{name}"
        self.temporary = f"{folder}/tmp-{name}"
        os.makedirs(self.temporary, exist_ok=True)
        cluster = f"{folder}/{name}.yaml"
        with open(cluster, "w") as file:
            file.write(GROUPS % (rollouts, ", {role: critic}" if "ppo" in settings else ""))
        self.command = [PROGRAM, "launch", "--cluster", cluster, "--", "train"] + settings + BASE + ["--set", f"output={self.output}"]
        self.environment = {**os.environ, "TROUPE_FAULTS": self.mark, "TMPDIR": self.temporary}
        self.environment.pop("XDG_RUNTIME_DIR", None)

    def start(self, **more):
        with open(self.said, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            env={**self.environment, **more})
        return self

    def text(self):
        with open(self.said, errors="replace") as file:
            return file.read()

    def steps(self):
        try:
            with open(f"{self.output}/metrics.jsonl") as file:
                return file.read().count("\n")
        except OSError:
            return 0

    def until(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{what}: {self.process.poll()}\n{self.text()[-4000:]}")
            time.sleep(0.005)

    def pid(self, node):
        if node == "controller":
            return self.process.pid
        with open(f"{self.output}/logs/{node}.log", errors="replace") as file:
            return int(re.findall(r"process (\d+) is ready", file.read())[-1])

    def wait(self):
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return None

    def leftovers(self):
        end = time.monotonic() + 20
        while processes(self.mark) and time.monotonic() < end:
            time.sleep(0.02)
        left = [f"process {each}" for each in processes(self.mark)]
        if self.process.returncode in (0, 11, 12, 13):  # a killed controller's folder is removed by the next one
            left += [each for each in os.listdir(self.temporary)]
        return left

    def end(self):
        for process in processes(self.mark):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def sha(output):
    with open(f"{output}/latest/model.safetensors", "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def audit(output):
    """What is wrong, or ""."""
    got = subprocess.run([PROGRAM, "audit", output, "--json"], capture_output=True, text=True)
    return "" if got.returncode == 0 else f"audit: {got.returncode}: {got.stdout}{got.stderr}"


CALM = {}


def calm(folder, run):
    """SHA-256 of the weights of the run that nobody disturbs."""
    if run not in CALM:
        launch = Launch(folder, f"calm {run}".replace(" ", "-"), RUNS[run]).start()
        if launch.wait() != 0:
            raise RuntimeError(f"the undisturbed run failed:\n{launch.text()}")
        CALM[run] = sha(launch.output)
    return CALM[run]


def hit(launch, fault, node):
    victim = launch.pid(node)
    if fault == "reset":
        reset_connections(victim)
    elif fault == "kill 4 times":
        for number in range(1, 5):
            os.kill(launch.pid(node), signal.SIGKILL)
            if number < 4:
                launch.until(lambda: f"{node}: incarnation {number + 1} has joined" in launch.text(), "no successor")
    elif fault == "kill":
        os.kill(victim, signal.SIGKILL)
    else:
        os.kill(victim, signal.SIGSTOP)
        until = time.monotonic() + float(re.search(r"\d+", fault).group())
        while time.monotonic() < until and launch.process.poll() is None:
            time.sleep(0.01)
        try:
            os.kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass


def disturb(folder, number, run, fault, node, moment):
    """What is wrong with one disturbed run, or None."""
    expected = EXPECTED[fault, node]
    weights = calm(folder, run)
    launch = Launch(folder, f"run-{number}", RUNS[run], 1 if node == "rollout" else 2).start()
    wrong = []
    try:
        launch.until(lambda: launch.steps() >= 1 + int(moment * 3), "no step")
        time.sleep(moment % 0.1)
        began, clock = time.monotonic(), time.time()
        hit(launch, fault, node)
        code = launch.wait()
        took = time.monotonic() - began
        replaced = len(re.findall("another process takes its place", launch.text()))
        print(f"{number}: {run}, {fault}, {node}: {code} after {took:.1f} s, {replaced} replaced; expected: {expected}", flush=True)
        if code == 13 and "The role rollout lost more than 3 processes within 60 s" not in launch.text():
            wrong.append("the message does not name the role")
        how, what = expected.split()[0], int(expected.split()[-1])
        # The others completed the run before the loss was noticed.
        late = launch.steps() >= STEPS and os.stat(f"{launch.output}/metrics.jsonl").st_mtime < clock + NOTICED.get(fault, 8)
        if how == "continues":
            if code != 0 or not (replaced == what or (replaced < what and late)):
                wrong.append(f"it ended with {code}, {replaced} were replaced")
        elif code != what and not (code == 0 and late):
            wrong.append(f"it ended with {code}")
        elif code != 0:
            wrong += [f"left: {each}" for each in launch.leftovers()]
            if launch.start().wait() != 0:
                wrong.append("the same command failed")
        wrong += [f"left: {each}" for each in launch.leftovers()]
        found = audit(launch.output)
        if found:
            wrong.append(found)
        if "free" not in run and sha(launch.output) != weights:
            wrong.append("the weights differ from those of the undisturbed run")
        return wrong and "; ".join(wrong) + "\n" + launch.text()[-4000:]
    finally:
        launch.end()
        shutil.rmtree(launch.output, ignore_errors=True)


def leased_to(output, holder):
    try:
        with sqlite3.connect(f"file:{output}/ledger.db?mode=ro", uri=True, timeout=5) as ledger:
            return ledger.execute("SELECT count(*) FROM events WHERE kind = 'leased' AND detail LIKE ?", (f"%{holder}%",)).fetchone()[0]
    except sqlite3.Error:
        return 0


def times(folder, count):
    """Seconds from SIGKILL of a rollout until its samples are given away, and until its successor gets some (the ledger's rows appear
    up to 0.2 s later)."""
    settings = RUNS["grpo pinned"] + ["--set", "train.steps=100000", "--set", "recovery.restarts=1000"]
    launch = Launch(folder, "times", settings)
    launch.command += ["--set", "train.steps=100000"]
    launch.start()
    given, sampled = [], []
    try:
        launch.until(lambda: launch.steps() >= 3, "no step")
        number = 0
        while len(given) < count:
            number += 1
            victim = launch.pid("rollout-0")
            began = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            # It may have no samples when it is killed: then nothing is measured.
            joined = f"rollout-0: incarnation {number + 1} has joined"
            launch.until(lambda: f"rollout-0#{number}: its " in launch.text() or joined in launch.text(), "not given away")
            had_samples = f"rollout-0#{number}: its " in launch.text()
            after = time.monotonic() - began
            launch.until(lambda: leased_to(launch.output, f"rollout-0#{number + 1}/") > 0, "its successor got no sample")
            if had_samples:
                given.append(after)
                sampled.append(time.monotonic() - began)
            time.sleep(0.5)
    finally:
        launch.end()
    for what, found in (("given away", given), ("successor samples", sampled)):
        found.sort()
        print(f"{what}: median {found[len(found) // 2]:.3f} s, worst of {len(found)} {found[-1]:.3f} s", flush=True)
    return given[-1] > 3 or sampled[-1] > 30  # far above what is promised on an idle machine


def main():
    folder = tempfile.mkdtemp()
    failed = False
    try:
        if LENGTH == "times":
            return times(folder, 20)
        draw = random.Random(SEED)
        if LENGTH == "short":
            cases = SHORT
        else:
            pairs = sorted(EXPECTED)
            cases = []
            while len(cases) < int(LENGTH):
                fault, node = draw.choice(pairs)
                cases.append(("ppo off" if node == "critic" else draw.choice(sorted(RUNS)), fault, node))
        ends = collections.Counter()
        for number, (run, fault, node) in enumerate(cases, 1):
            wrong = disturb(folder, number, run, fault, node, draw.random())
            ends[fault] += 1
            if wrong:
                failed = True
                print(f"WRONG: {number}: {run}, {fault}, {node}: {wrong}", flush=True)
        print(json.dumps(ends), flush=True)
        return failed
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
