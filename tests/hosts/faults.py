#!/usr/bin/env python3
"""Processes and links of runs over several hosts that fail: faults.py PROGRAM SOURCE [CASE...]

A GRPO run with pinned weights over three hosts (hosts.py), by ssh: a rollout on another host is killed; the link of its host is cut for 3 s, for 8 s, and for good; a
rank of a policy on two hosts is killed, and the link between them is cut. A run that replaces the group goes on to the weights of an undisturbed one; one that ends names the group,
and the same command resumes it to these weights. No process is left on any host. Prints a line per case; exits with 1 on failure, and with 77 where the hosts cannot be made.
"""
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import Hosts, missing  # noqa: E402

PROGRAM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
WANTED = sys.argv[3:]
NAMES = ["a", "b", "c"]
STEPS = 60
SETTINGS = ["--algorithm", "grpo", "--set", "train.batch_size=8", "--set", "train.max_length=64", "--set", "train.learning_rate=1e-3", "--set", "grpo.beta=0.1",
            "--set", "grpo.group_size=4", "--set", "rollout.max_new_tokens=12", "--set", "reward=[{rule: exact_match}]", "--set", "async.mode=pinned",
            "--set", "async.eta=1", "--set", f"model={SOURCE}/launch/quickstart/model", "--set", f"data.path={SOURCE}/launch/quickstart/train.jsonl",
            "--set", f"train.steps={STEPS}", "--set", "train.threads=1", "--set", "train.save_every=10", "--set", "train.log_every=0"]
ALONE = ["{role: policy, host: a}", "{role: reference, host: a}", "{role: rollout, count: 2, hosts: [b, c]}", "{role: verifier, host: a}"]
DIVIDED = ["{role: policy, hosts: [b, c], parallel: {dp: 2}}", "{role: reference, host: a}", "{role: rollout, host: a}", "{role: verifier, host: a}"]
# What happens (to the host c), with which groups, and the exit codes that may follow; 0: the run goes on.
CASES = [
    ("rollout killed", ALONE, {0}),
    ("link cut for 3 s", ALONE, {0}),
    ("link cut for 8 s", ALONE, {0}),
    ("link cut for good", ALONE, {0, 13}),  # 13 where the run is longer than the restarts that the role has
    ("rank of the policy killed", DIVIDED, {11}),
    ("link of the policy cut for good", DIVIDED, {8, 11}),
]


class Case:
    def __init__(self, hosts, number, groups):
        self.hosts, self.folder = hosts, pathlib.Path(hosts.folder) / f"case-{number}"
        self.folder.mkdir()
        self.output = self.folder / "run"
        self.cluster = self.folder / "cluster.yaml"
        listed = "".join(f"  - {{name: {name}, slots: {1 if groups is DIVIDED and name != 'a' or groups is ALONE and name != 'a' else 4}, address: {hosts.address(name)}}}\n" for name in NAMES)
        self.cluster.write_text(f"controller: {{address: {hosts.address('a')}}}\nmpi: {{network: 10.77.0.0/24, ports: 21000-21099}}\nhosts:\n{listed}groups:\n"
                                + "".join(f"  - {group}\n" for group in groups))

    def words(self):
        return [PROGRAM, "launch", "--cluster", str(self.cluster), "--", "train"] + SETTINGS + ["--set", f"output={self.output}"]

    def start(self):
        self.said = open(self.folder / "said", "a")
        return self.hosts.start("a", self.words(), stdout=self.said, stderr=subprocess.STDOUT)

    def steps(self):
        path = self.output / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def wait_for_steps(self, count, run):
        end = time.monotonic() + 120
        while self.steps() < count and run.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def weights(self):
        path = self.output / "latest" / "model.safetensors"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "none"

    def text(self):
        return (self.folder / "said").read_text(errors="replace")

    def workers(self, name):
        return [int(line.split()[0]) for line in self.hosts.processes(name) if " worker " in line and "mpirun" not in line and "ssh" not in line.split()[2]]


def disturb(hosts, case, what):
    if "killed" in what:
        victim = case.workers("c")[0]
        hosts.run("c", ["kill", "-KILL", str(victim)])
        return
    hosts.cut("c")
    if "for good" not in what:
        time.sleep(float(re.search(r"for (\d+) s", what).group(1)))
        hosts.join("c")


def left_over(hosts):
    """Processes that are still there some seconds after a run."""
    end = time.monotonic() + 75  # those of a host that is cut off notice by themselves
    while True:
        left = {name: hosts.processes(name) for name in NAMES}
        if not any(left.values()) or time.monotonic() > end:
            return left
        time.sleep(1)


def attempt(hosts, number, what, groups, codes, expected):
    case = Case(hosts, number, groups)
    run = case.start()
    case.wait_for_steps(6, run)
    disturb(hosts, case, what)
    began = time.monotonic()
    try:
        code = run.wait(timeout=240)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
        return f"it did not end\n{case.text()[-4000:]}"
    took = time.monotonic() - began
    left = left_over(hosts)
    hosts.join("c")
    time.sleep(1.5)
    resumed = ""
    if code != 0:
        again = hosts.run("a", case.words(), timeout=300)
        resumed = f", resumed with {again.returncode}"
    print(f"{what}: exit code {code} after {took:.1f} s{resumed}", flush=True)
    wrong = []
    if code not in codes:
        wrong.append(f"expected exit code {codes}")
    if any(left.values()):
        wrong.append(f"left over: {left}")
    if case.weights() != expected:
        wrong.append(f"the weights are {case.weights()}, expected {expected}")
    audit = hosts.run("a", [PROGRAM, "audit", str(case.output)], timeout=120)
    if audit.returncode:
        wrong.append("audit: " + audit.stdout[-2000:])
    return wrong and "; ".join(wrong) + "\n" + case.text()[-4000:]


def undisturbed(hosts, number, groups):
    case = Case(hosts, number, groups)
    if case.start().wait(timeout=240) != 0:
        raise RuntimeError(case.text())
    return case.weights()


def main():
    why = missing()
    if why:
        print(f"skipped: {why}")
        return 77
    failed = False
    with Hosts(NAMES) as hosts:
        expected = {id(groups): undisturbed(hosts, f"calm-{len(groups)}-{i}", groups) for i, groups in enumerate((ALONE, DIVIDED))}
        for number, (what, groups, codes) in enumerate(CASES):
            if WANTED and what not in WANTED:
                continue
            wrong = attempt(hosts, number, what, groups, codes, expected[id(groups)])
            if wrong:
                failed = True
                print(f"WRONG: {what}: {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
