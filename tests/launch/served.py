"""troupe serve as a process with Python's HTTP client, for tests that are started with PROGRAM and SOURCE."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
STORIES = os.path.join(SOURCE, "tests/data/models/stories260k/hf")
TOOLS = os.path.join(SOURCE, "tests/data/chat_templates/tools.jinja")
DIGITS = os.path.join(SOURCE, "tests/data/models/digit-completion")


def under_mpirun(ranks):
    """The words before a command that several ranks run."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


def mask_ids(text):
    """The ids of a sampling mask in the form of differences or of a bit set (docs/grpo.md#sampling-masks)."""
    data, ids, at = base64.b64decode(text), [], 1
    if data[:1] == b"b":
        return [8 * byte + bit for byte, bits in enumerate(data[1:]) for bit in range(8) if bits >> bit & 1]
    assert data[:1] == b"d", text
    while at < len(data):
        difference, shift = 0, 0
        while data[at] >= 128:
            difference, shift, at = difference | (data[at] & 127) << shift, shift + 7, at + 1
        difference, at = difference | data[at] << shift, at + 1
        ids.append((ids[-1] + 1 if ids else 0) + difference)
    return ids


class Server:
    def __init__(self, model, *options, ranks=1, stages=1, quiet=True):
        """`ranks`: tensor-parallel ranks of each of the pipeline stages, which mpirun starts where they are several."""
        words = [PROGRAM, "serve", "--model", model, "--port", "0", "--threads", "1", *["--quiet"] * quiet, *options]
        if ranks * stages > 1:
            words = [*under_mpirun(ranks * stages), *words, "--tp", str(ranks), "--pp", str(stages)]
        # Open MPI keeps what it had at its end.
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0") if ranks * stages > 1 else None)
        self.end_signal = signal.SIGUSR1 if ranks * stages > 1 else signal.SIGTERM  # which mpirun forwards
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (http://127\.0\.0\.1:(\d+))\n", line)
        if not found:
            self.process.kill()
            raise RuntimeError(line + self.process.communicate()[1])
        self.url, self.port, self.model = found[1], int(found[2]), model

    def stop(self):
        self.process.send_signal(self.end_signal)
        self.output = self.process.communicate(timeout=60)
        return self.process.returncode

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.request("GET", path)
        assert status == 200, (path, status, body)
        return body.decode()

    def post(self, path, **fields):
        status, _, body = self.request("POST", path, fields)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def complete(self, **fields):
        return self.post("/v1/completions", **fields)

    def chat(self, **fields):
        return self.post("/v1/chat/completions", **fields)

    def stream(self, path, **fields):
        status, headers, body = self.request("POST", path, dict(fields, stream=True))
        assert status == 200, (status, body)
        assert headers["content-type"].startswith("text/event-stream"), headers
        events = [line[len("data: "):] for line in body.decode().split("\n") if line.startswith("data: ")]
        assert events[-1] == "[DONE]", events
        return [json.loads(event) for event in events[:-1]]

    def events(self, path, **fields):
        """The events of a stream whose events have names: [(name, data)]."""
        status, headers, body = self.request("POST", path, dict(fields, stream=True))
        assert status == 200, (status, body)
        assert headers["content-type"].startswith("text/event-stream"), headers
        found = []
        for text in body.decode().removesuffix("\n\n").split("\n\n"):
            name, data = text.split("\n")
            assert name.startswith("event: ") and data.startswith("data: "), text
            found.append((name[len("event: "):], json.loads(data[len("data: "):])))
            assert found[-1][1]["type"] == found[-1][0], text
        return found

    def metrics(self):
        """Values of /metrics by name, without buckets."""
        samples = (line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if not line.startswith("#") and "_bucket" not in line)
        return {name.split("{")[0]: float(value) for name, value in samples}

    def metric(self, name):
        return self.metrics()[name]


def run(command, *lines):
    said = subprocess.run([PROGRAM, *command, "--quiet"], input="".join(json.dumps(line) + "\n" for line in lines),
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def answer_of(connection, method, path, body=None, headers={}):
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
