"""The HTTP server with a stub beside nginx: nginx.py PROGRAM, build/release/benchmarks/serve.

nginx (Debian's nginx-light) answers every request with a fixed body of the stub's size from memory. Both have two
threads or processes and, in turn, the same load generator with the same number of connections. The last line is a JSON
object: `value` and `nginx` are medians of requests/s, `ratio` the median of the quotients of the rounds."""
import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONFIGURATION = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type application/json;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 '{body}'; }} }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nginx does not listen at port {port} after {seconds} s")


def measure(program, *flags):
    said = subprocess.run([program, *flags], capture_output=True, text=True, check=True)
    return json.loads(said.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--connections", default="64")
    parser.add_argument("--seconds", default="5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--body-bytes", type=int, default=290)
    options = parser.parse_args()
    flags = ("--connections", options.connections, "--seconds", options.seconds)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        port, folder = free_port(), pathlib.Path(name)
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=port, body="x" * options.body_bytes))
        process = subprocess.Popen(["nginx", "-e", str(folder / "errors"), "-c", str(configuration)])
        try:
            wait_for(port, process)
            for number in range(options.rounds):
                ours.append(measure(options.program, "--stub", *flags))
                theirs.append(measure(options.program, "--target", str(port), *flags))
                print(f"round {number}: {ours[-1]['value']:.0f} requests/s, nginx {theirs[-1]['value']:.0f}", flush=True)
        finally:
            process.terminate()
            process.wait()
    value = [each["value"] for each in ours]
    nginx = [each["value"] for each in theirs]
    print(json.dumps({"benchmark": "nginx", "value": statistics.median(value), "unit": "requests/s", "nginx": statistics.median(nginx),
                      "ratio": statistics.median(a / b for a, b in zip(value, nginx)),
                      "p99_ms": statistics.median(each["p99_ms"] for each in ours),
                      "nginx_p99_ms": statistics.median(each["p99_ms"] for each in theirs)}))


main()
