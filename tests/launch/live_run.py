"""A training run whose rollouts serve the OpenAI API, for tests that are started with PROGRAM and SOURCE."""
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading

from served import DIGITS, PROGRAM, SOURCE

ROWS = os.path.join(SOURCE, "launch/quickstart/train.jsonl")
SMALL = {"reward": "exact_match", "model": DIGITS, "data.path": ROWS, "train.max_length": 64, "train.learning_rate": "1e-3", "train.batch_size": 4, "train.threads": 1,
         "train.log_every": 0, "train.save_every": 0, "rollout.max_new_tokens": 12}
LISTENING = re.compile(r"serving the weights of the rollout at (?:http://127\.0\.0\.1:(\d+)|/\S+)")


def command(output, settings, cluster=None):
    start = [PROGRAM, "launch", "--cluster", cluster, "--"] if cluster else [PROGRAM]
    start += ["train", "--algorithm", "grpo", "--set", f"output={output}"]
    for key, value in settings.items():
        start += ["--set", f"{key}={value}"]
    return start


class LiveRun:
    """Starts a run and waits until `servers` of its rollouts listen."""

    def __init__(self, output, settings, cluster=None, servers=1, key=None):
        self.output, self.lines, self.key = output, [], key
        names = [f"rollout-{i}.log" for i in range(servers)] if cluster else ["train.log"]
        logs = [os.path.join(output, "logs", name) for name in names]
        before = [os.path.getsize(log) if os.path.exists(log) else 0 for log in logs]  # of a run that is resumed
        self.process = subprocess.Popen(command(output, settings, cluster), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self.reader.start()
        self.ports = [self.port_in(log, begin) for log, begin in zip(logs, before)]

    def port_in(self, log, begin):
        while self.running():
            if os.path.exists(log):
                with open(log, encoding="utf-8") as file:
                    file.seek(begin)
                    if found := LISTENING.search(file.read()):
                        return found[1] and int(found[1])
            threading.Event().wait(0.02)
        raise RuntimeError("".join(self.lines))

    def wait(self, timeout=300):
        code = self.process.wait(timeout)
        self.reader.join()
        self.process.stderr.close()
        return code

    def request(self, path, body, port=None, key=None):
        key = key or self.key
        connection = http.client.HTTPConnection("127.0.0.1", port or self.ports[0], timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {key}"} if key else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def running(self):
        return self.process.poll() is None


def bits(output):
    """The weights and metrics of a run."""
    found = []
    for name in ("latest/model.safetensors", "metrics.jsonl"):
        with open(os.path.join(output, name), "rb") as file:
            found.append(file.read())
    return found


def folder():
    return tempfile.TemporaryDirectory()
