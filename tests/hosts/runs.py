#!/usr/bin/env python3
"""Runs over several hosts: runs.py PROGRAM SOURCE [short|long]

Three hosts (hosts.py) and the same runs on one: a GRPO run with pinned weights of six groups has the weights of one process; an SFT run whose policy is divided
over two hosts has those of the same grid on one. A host with another file, or without it, ends the launch before the first step, as does one with another program.
The same over a Slurm cluster on these hosts, where its packages are installed. Prints a line per check; exits with 1 on failure, and with 77 where the hosts cannot be made.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import Hosts, missing  # noqa: E402
import slurm  # noqa: E402

PROGRAM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
STEPS = 20 if sys.argv[3:] == ["long"] else 4
NAMES = ["a", "b", "c"]
GRPO = ["--algorithm", "grpo", "--set", "train.batch_size=8", "--set", "train.max_length=64", "--set", "train.learning_rate=1e-3", "--set", "grpo.beta=0.1",
        "--set", "grpo.group_size=4", "--set", "grpo.minibatches=2", "--set", "rollout.max_new_tokens=12", "--set", "reward=[{rule: exact_match}]",
        "--set", "async.mode=pinned", "--set", "async.eta=1"]
SFT = ["--algorithm", "sft", "--set", "train.batch_size=8", "--set", "train.max_length=64"]
COMMON = ["--set", f"model={SOURCE}/launch/quickstart/model", "--set", f"data.path={SOURCE}/launch/quickstart/train.jsonl", "--set", f"train.steps={STEPS}",
          "--set", "train.threads=1", "--set", "train.save_every=0", "--set", "train.log_every=0"]
SIX_ANYWHERE = ["{role: policy}", "{role: reference}", "{role: rollout, count: 3}", "{role: verifier}"]
GRID = "parallel: {dp: 2, pp: 2}"
failures = []


def check(what, passed, detail=""):
    print(f"{'ok' if passed else 'WRONG'}: {what}{'' if passed else ': ' + detail}", flush=True)
    if not passed:
        failures.append(what)


class Runs:
    def __init__(self, hosts):
        self.hosts, self.count = hosts, 0
        self.work = pathlib.Path(hosts.folder) / "runs"
        self.work.mkdir()

    def file(self, groups, **keys):
        """A cluster file with the hosts, whose controller is on the first."""
        lines = [f"controller: {{address: {self.hosts.address(NAMES[0])}}}", "mpi: {network: 10.77.0.0/24, ports: 21000-21099}", "hosts:"]
        for name in NAMES:
            program = f", program: {keys['program']}" if keys.get("program") and name == "c" else ""
            lines.append(f"  - {{name: {name}, slots: 4, address: {self.hosts.address(name)}{program}}}")
        lines += ["groups:"] + [f"  - {group}" for group in groups]
        path = self.work / f"cluster-{self.count}.yaml"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def launch(self, cluster, settings, via=None):
        """(exit code, SHA-256 of the weights, what it said); via slurm in an allocation of all slots"""
        self.count += 1
        output = self.work / f"run-{self.count}"
        words = [PROGRAM, "launch", "--cluster", cluster] + (["--via", via] if via else []) + ["--", "train"] + settings + ["--set", f"output={output}"]
        ended = self.hosts.run("a", (["salloc", "-N3", "--ntasks=12"] if via == "slurm" else []) + words, timeout=900)
        weights = output / "latest" / "model.safetensors"
        said = ended.stderr + ended.stdout
        for log in sorted(output.glob("logs/*.log")):
            said += f"--- {log.name}\n" + log.read_text(errors="replace")
        return ended.returncode, hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "none", said

    def alone(self, settings):
        self.count += 1
        output = self.work / f"run-{self.count}"
        ended = self.hosts.run("a", [PROGRAM, "train"] + settings + ["--set", f"output={output}"], timeout=900)
        if ended.returncode:
            raise RuntimeError(ended.stderr)
        return hashlib.sha256((output / "latest" / "model.safetensors").read_bytes()).hexdigest()


def no_orphans(hosts, what):
    """A process on another host ends when its connection does, some moments after the launch."""
    end = time.monotonic() + 20
    while True:
        left = {name: [line for line in hosts.processes(name) if "slurm" not in line] for name in NAMES}
        if not any(left.values()) or time.monotonic() > end:
            return check(f"{what}: no process is left", not any(left.values()), str(left))
        time.sleep(0.2)


SIX = ["{role: policy, host: a}", "{role: reference, host: b}", "{role: rollout, host: b}", "{role: rollout, count: 2, host: c}", "{role: verifier, host: b}"]


def six_groups(runs):
    expected = runs.alone(GRPO + COMMON)
    cluster = runs.file(SIX)
    for via in ("local", "ssh"):
        code, weights, said = runs.launch(cluster, GRPO + COMMON, via)
        check(f"GRPO, six groups, --via {via}: the weights of one process", code == 0 and weights == expected, f"exit code {code}, {weights}\n{said}")
    no_orphans(runs.hosts, "GRPO")
    return expected


def divided_policy(runs):
    cluster = runs.file([f"{{role: policy, hosts: [b, c], {GRID}}}"]).replace("slots: 4", "slots: 2")
    text = pathlib.Path(cluster).read_text().replace("slots: 4", "slots: 2")
    pathlib.Path(cluster).write_text(text)
    found = {}
    for via in ("local", "ssh"):
        code, found[via], said = runs.launch(cluster, SFT + COMMON, via)
        check(f"SFT, dp 2 pp 2, --via {via}: it ends with 0", code == 0, f"exit code {code}\n{said}")
    check("SFT, dp 2 pp 2 over two hosts: the weights of one host", found["ssh"] == found["local"] != "none", str(found))
    no_orphans(runs.hosts, "SFT")
    return found["local"]


def batch(runs, cluster, grpo):
    """The script of --write-sbatch as it is written."""
    script, output = runs.work / "run.sh", runs.work / "batch"
    file = runs.file(SIX)
    words = [PROGRAM, "launch", "--cluster", file, "--write-sbatch", str(script), "--", "train"] + GRPO + COMMON + ["--set", f"output={output}"]
    written = runs.hosts.run("a", words)
    ended = runs.hosts.run("a", ["sbatch", "--wait", f"--output={runs.work}/batch.log", str(script)], timeout=900)
    weights = output / "latest" / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "none"
    check("GRPO, six groups, sbatch with the written script: the weights of one process", ended.returncode == 0 and found == grpo,
          f"{written.stderr}{ended.stderr}{(runs.work / 'batch.log').read_text() if (runs.work / 'batch.log').exists() else ''}{cluster.log()}")


def by_slurm(runs, grpo, sft):
    if slurm.missing():
        print(f"skipped: --via slurm: {slurm.missing()}", flush=True)
        return
    with slurm.Slurm(runs.hosts, slots=4) as cluster:
        anywhere = runs.work / "anywhere.yaml"
        anywhere.write_text(f"controller: {{address: {runs.hosts.address('a')}}}\ngroups:\n" + "".join(f"  - {group}\n" for group in SIX_ANYWHERE))
        for what, file in (("hosts of the file", runs.file(SIX)), ("where Slurm places them", str(anywhere))):
            code, weights, said = runs.launch(file, GRPO + COMMON, "slurm")
            check(f"GRPO, six groups, --via slurm, {what}: the weights of one process", code == 0 and weights == grpo, f"exit code {code}, {weights}\n{said}{cluster.log()}")
        batch(runs, cluster, grpo)
        divided = runs.file([f"{{role: policy, hosts: [b, c], {GRID}}}"])
        pathlib.Path(divided).write_text(pathlib.Path(divided).read_text().replace("slots: 4", "slots: 2"))
        code, weights, said = runs.launch(divided, SFT + COMMON, "slurm")
        check("SFT, dp 2 pp 2 over two nodes, --via slurm: the weights of one host", code == 0 and weights == sft, f"exit code {code}, {weights}\n{said}{cluster.log()}")
        no_orphans(runs.hosts, "--via slurm")


def ports(runs):
    """What listens on the hosts during runs: sshd, the controller at one address, and mpirun and ranks of groups on several hosts in their range."""
    cases = (("a group on one host", ["{role: policy, host: b, parallel: {dp: 2, pp: 2}}"], range(0)),
             ("a group on two hosts", [f"{{role: policy, hosts: [b, c], {GRID}}}"], range(21000, 21100)))
    for what, groups, allowed in cases:
        cluster = runs.file(groups)
        pathlib.Path(cluster).write_text(pathlib.Path(cluster).read_text().replace("slots: 4", f"slots: {2 if allowed else 4}"))
        output = runs.work / f"ports-{len(allowed)}"
        words = [PROGRAM, "launch", "--cluster", cluster, "--", "train"] + SFT + COMMON + ["--set", "train.steps=30", "--set", f"output={output}"]
        run = runs.hosts.start("a", words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = {name: set() for name in NAMES}
        while run.poll() is None:
            for name in NAMES:
                found[name] |= {(address, port) for address, port in runs.hosts.listening(name) if port != 22 and not address.startswith("127.")}
            time.sleep(0.1)
        controller = {port for address, port in found["a"] if address == runs.hosts.address("a") and port not in allowed}
        others = {name: sorted(port for address, port in found[name] if port not in allowed and not (name == "a" and port in controller)) for name in NAMES}
        check(f"ports, {what}: the controller's address and MPI's range alone", run.returncode == 0 and len(controller) == 1 and not any(others.values()),
              f"exit code {run.returncode}, {found}")
        check(f"ports, {what}: MPI listens {'in its range' if allowed else 'nowhere'}", any(port in allowed for _, port in found["b"]) == bool(allowed), str(found))


def refused(runs):
    groups = ["{role: policy, host: a}", "{role: reference, host: a}", "{role: rollout, host: c}", "{role: verifier, host: a}"]
    model = runs.work / "model"
    shutil.copytree(f"{SOURCE}/launch/quickstart/model", model)
    other = runs.work / "other"
    shutil.copytree(model, other)
    with open(other / "config.json", "a") as file:
        file.write("\n")
    settings = GRPO + COMMON + ["--set", f"model={model}"]
    runs.hosts.run("c", ["mount", "--bind", str(other), str(model)])
    code, _, said = runs.launch(runs.file(groups), settings)
    check("another file on a host is refused by name", code != 0 and f"host c: {model}/config.json: expected" in said, f"exit code {code}\n{said}")
    runs.hosts.run("c", ["umount", str(model)])
    runs.hosts.run("c", ["mount", "-t", "tmpfs", "tmpfs", str(model)])
    code, _, said = runs.launch(runs.file(groups), settings)
    check("a missing file on a host is refused by name", code != 0 and f"host c: {model}/config.json" in said and "none" in said, f"exit code {code}\n{said}")
    runs.hosts.run("c", ["umount", str(model)])
    code, _, said = runs.launch(runs.file(groups, program="/nowhere/troupe"), GRPO + COMMON)
    check("a missing program on a host is named", code != 0 and "/nowhere/troupe" in said, f"exit code {code}\n{said}")
    no_orphans(runs.hosts, "refused launches")


def main():
    why = missing()
    if why:
        print(f"skipped: {why}")
        return 77
    try:
        made = Hosts(NAMES).__enter__()
    except (RuntimeError, OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        print(f"skipped: the hosts cannot be made here: {error!r}")
        return 77
    with made as hosts:
        runs = Runs(hosts)
        grpo = six_groups(runs)
        sft = divided_policy(runs)
        ports(runs)
        refused(runs)
        by_slurm(runs, grpo, sft)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
