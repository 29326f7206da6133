#!/usr/bin/env python3
"""rank.py FOLDER OUTPUT COMMAND...: runs a command and writes FOLDER/RANK, RANK being that of mpirun, or 0.

The file is a JSON object: `peak`, the greatest resident memory of the process in MiB, and `saving`, by how much the resident memory grew
at most since the first checkpoint appeared in the directory OUTPUT, or null without one.
"""
import json
import os
import pathlib
import subprocess
import sys
import time


def status(pid, key):
    """A line of /proc/PID/status in MiB; 0 when the process has ended."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return 0


def saves(output):
    return output.is_dir() and any("checkpoint-" in entry.name for entry in output.iterdir())


def main():
    output = pathlib.Path(sys.argv[2])
    process = subprocess.Popen(sys.argv[3:])
    before = resident = None
    while True:
        pid, code, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        if before is None and saves(output):
            before, resident = status(process.pid, "VmHWM"), status(process.pid, "VmRSS")
            pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # VmHWM begins again
        time.sleep(0.01)
    peak = usage.ru_maxrss / 1024
    found = {"peak": max(peak, before or 0), "saving": None if before is None else peak - resident}
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
    (pathlib.Path(sys.argv[1]) / rank).write_text(json.dumps(found))
    return os.waitstatus_to_exitcode(code)


if __name__ == "__main__":
    sys.exit(main())
