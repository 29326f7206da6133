#!/usr/bin/env python3
"""Steps per second of a launch with two tensor-parallel ranks while 1,500 connections are held to everything that it listens on.

connections.py PROGRAM MODEL ROWS [--seconds 30] [--rounds 3] [--connections 1500] [--without-namespaces]

Windows without and with connections alternate; the medians are compared. --without-namespaces denies network namespaces to the
program (unshare --user), so that mpirun's two ports are open. The last line is one JSON object; the exit code is 1 if the rate falls
below 0.9 or the logs grow by 1 MB.
"""
import argparse
import json
import os
import pathlib
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

MARK = f"TROUPE_CONNECTIONS={os.getpid()}"
DENIED = ["unshare", "--user", "--map-root-user", "sh", "-c", 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"', "-"]


def processes():
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and MARK.encode() in (entry / "environ").read_bytes().split(b"\0"):
                yield entry
        except OSError:
            pass  # it has exited, or belongs to somebody else


def listeners():
    """TCP ports and unix sockets of this network namespace at which the run listens."""
    inodes = set()
    for process in processes():
        for fd in (process / "fd").glob("*"):
            try:
                inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                pass
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                ports.add(("127.0.0.1", int(words[1].rsplit(":")[-1], 16)))
    paths = set()
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        # Flag 0x10000: it listens.
        if len(words) == 8 and int(words[3], 16) & 0x10000 and words[6] in inodes:
            paths.add(words[7])
    return sorted(ports) + sorted(paths)


def hold(address, count):
    held = []
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        one.setblocking(False)
        try:
            one.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            one.close()
            continue
        held.append(one)
    return held


class Run:
    def __init__(self, options, folder):
        cluster, self.output = folder / "cluster.yaml", folder / "out"
        cluster.write_text("groups: [{role: policy, parallel: {tp: 2}}]\n")
        settings = [f"model={options.model}", f"data.path={options.rows}", f"output={self.output}", "train.steps=1000000",
                    "train.save_every=1000000", "train.batch_size=4", "train.threads=1", "train.max_length=192", "train.log_every=0"]
        command = [options.program, "launch", "--cluster", str(cluster), "--", "train", "--algorithm", "sft"]
        for setting in settings:
            command += ["--set", setting]
        self.terminal = open(folder / "terminal", "wb")
        self.process = subprocess.Popen((DENIED if options.without_namespaces else []) + command, stdin=subprocess.DEVNULL,
                                        stdout=self.terminal, stderr=self.terminal, env={**os.environ, **dict([MARK.split("=")])})

    def steps(self):
        metrics = self.output / "metrics.jsonl"
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    def log_bytes(self):
        return sum(path.stat().st_size for path in (self.output / "logs").iterdir()) + os.fstat(self.terminal.fileno()).st_size

    def wait_for_steps(self, count):
        while self.steps() < count:
            if self.process.poll() is not None:
                sys.exit(f"the run ended with code {self.process.returncode}")
            time.sleep(0.1)

    def rate(self, seconds):
        before, begin = self.steps(), time.monotonic()
        time.sleep(seconds)
        if self.process.poll() is not None:
            sys.exit(f"the run ended with code {self.process.returncode}")
        return (self.steps() - before) / (time.monotonic() - begin)


def measure(run, options):
    run.wait_for_steps(5)
    time.sleep(2)  # until all groups are connected
    found, bytes_before = listeners(), run.log_bytes()
    alone, attacked, most = [], [], 0
    for number in range(options.rounds):
        alone.append(run.rate(options.seconds))
        held = [one for address in found for one in hold(address, options.connections)]
        most = max(most, len(held))
        attacked.append(run.rate(options.seconds))
        for one in held:
            one.close()
        print(f"round {number}: {alone[-1]:.2f} steps/s, {attacked[-1]:.2f} with {len(held)} connections", flush=True)
    return {"listeners": found, "held": most, "steps_per_second": statistics.median(alone),
            "attacked": statistics.median(attacked), "ratio": statistics.median(attacked) / statistics.median(alone),
            "log_growth": run.log_bytes() - bytes_before}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "model", "rows"):
        parser.add_argument(name)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=1500)
    parser.add_argument("--without-namespaces", action="store_true")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        run = Run(options, pathlib.Path(name))
        try:
            result = measure(run, options)
        finally:
            run.process.send_signal(signal.SIGTERM)
            run.process.wait()
    print(json.dumps(result))
    sys.exit(result["ratio"] < 0.9 or result["log_growth"] >= 1 << 20)


main()
