"""The admin listener of troupe serve: serve_admin_test.py PROGRAM SOURCE. Tokens of new weights are compared with troupe generate."""
import concurrent.futures
import http.client
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

from served import DIGITS, PROGRAM, STORIES, Server, UnixConnection, answer_of, run

KEY = "0123456789abcdef0123"


class Admin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.root = os.path.join(cls.folder.name, "weights")
        cls.first, cls.second = os.path.join(root, "first"), os.path.join(root, "runs/second")
        shutil.copytree(DIGITS, cls.first)
        rows = os.path.join(cls.folder.name, "rows.jsonl")
        with open(rows, "w", encoding="utf-8") as file:
            file.write('{"prompt": "1,2:", "completion": "9"}\n' * 4)
        run_folder = os.path.join(cls.folder.name, "run")
        subprocess.run([PROGRAM, "train", "--algorithm", "sft", "--model", DIGITS, "--data", rows, "--output", run_folder, "--quiet", "--set",
                        "train.batch_size=4", "--set", "train.steps=4", "--set", "train.threads=1", "--set", "train.learning_rate=1e-2"],
                       check=True, timeout=120)
        shutil.copytree(os.path.join(run_folder, "latest"), cls.second)
        shutil.copytree(STORIES, os.path.join(root, "stories"))
        os.symlink(DIGITS, os.path.join(root, "outside"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.socket = os.path.join(self.folder.name, "admin")
        self.server = Server(DIGITS, "--admin-socket", self.socket, "--weights-root", self.root)

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0)
        self.assertFalse(os.path.exists(self.socket))

    def admin(self, path, **body):
        return answer_of(UnixConnection(self.socket), "POST", path, body)

    def load(self, name):
        status, answer = self.admin("/update_weights_from_disk", model_path=name)
        self.assertEqual(status, 200, answer)
        return answer["weight_version"]

    def paused(self):
        return answer_of(UnixConnection(self.socket), "GET", "/is_paused")[1]["is_paused"]

    settings = {"prompt": "4,5,6:", "temperature": 1.0, "seed": 3, "max_tokens": 16}

    def test_tokens_are_those_of_the_loaded_weights(self):
        expected = {model: run(["generate", "--model", model], self.settings)[0]["ids"] for model in (self.first, self.second)}
        self.assertNotEqual(expected[self.first], expected[self.second])
        for version, model in enumerate((self.first, self.second, self.first)):
            if version > 0:
                self.assertEqual(self.load(os.path.relpath(model, self.root)), version)
            found = self.server.complete(return_token_ids=True, return_weight_versions=True, **self.settings)["choices"][0]
            self.assertEqual(found["token_ids"], expected[model])
            self.assertEqual(found["weight_versions"], [version] * len(expected[model]))

    def test_no_request_is_dropped(self):
        body = dict(self.settings, max_tokens=600, ignore_eos=True, return_weight_versions=True)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(self.server.complete, **dict(body, seed=seed)) for seed in range(8)]
            while self.server.metric("vllm:generation_tokens_total") < 50:
                pass
            self.assertEqual(self.admin("/pause"), (200, {"status": "paused"}))
            self.assertTrue(self.paused())
            self.assertEqual(self.load("runs/second"), 1)
            late = pool.submit(self.server.complete, **dict(body, max_tokens=8))
            self.assertFalse(late.done())
            self.assertEqual(self.admin("/resume"), (200, {"status": "resumed"}))
            self.assertFalse(self.paused())
            versions = [answer.result()["choices"][0]["weight_versions"] for answer in answers]
            self.assertEqual(late.result()["choices"][0]["weight_versions"], [1] * 8)
        for each in versions:
            self.assertEqual(len(each), 600)
            self.assertEqual(each, sorted(each))
        self.assertIn(0, [each[0] for each in versions])
        self.assertEqual({each[-1] for each in versions}, {1})

    def test_only_checkpoints_of_the_model_below_the_root_are_loaded(self):
        cases = [("../weights/first", "model_path"), ("/etc", "model_path"), (self.first, "model_path"), ("outside", "model_path"), ("", "model_path"),
                 ("missing", "model_path"), ("stories", "model_path"), (".", "model_path"), (None, "model_path")]
        for name, param in cases:
            status, answer = self.admin("/update_weights_from_disk", model_path=name)
            self.assertEqual((status, answer["error"]["param"]), (400, param), (name, answer))
        self.assertEqual(self.server.complete(return_weight_versions=True, **self.settings)["choices"][0]["weight_versions"][0], 0)

    def test_the_socket_is_private_and_apart(self):
        mode = os.stat(self.socket).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual(self.server.request("POST", "/pause", {})[0], 404)
        self.assertEqual(self.admin("/v1/completions", prompt="1")[0], 404)
        again = subprocess.run([PROGRAM, "serve", "--model", DIGITS, "--port", "0", "--admin-socket", self.socket], capture_output=True, text=True)
        self.assertEqual(again.stdout, "")
        self.assertIn(self.socket, again.stderr)

    def test_a_pause_ends_with_the_server(self):
        self.admin("/pause")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.server.complete, **self.settings)
            while self.server.metric("vllm:num_requests_waiting") < 1:
                pass
            self.server.process.terminate()
            self.assertEqual(len(answer.result()["choices"]), 1)


class Port(unittest.TestCase):
    def test_the_port_needs_a_key(self):
        with tempfile.TemporaryDirectory() as folder:
            path, old = os.path.join(folder, "keys"), os.path.join(folder, "socket")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write(KEY + "\n")
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            server = Server(DIGITS, "--admin-port", str(port), "--admin-key-file", path)
            try:
                for headers, status in (({}, 401), ({"Authorization": "Bearer " + KEY[::-1]}, 401), ({"Authorization": "Bearer " + KEY}, 200)):
                    found = answer_of(http.client.HTTPConnection("127.0.0.1", port, timeout=60), "POST", "/pause", {}, headers)
                    self.assertEqual(found[0], status, found)
            finally:
                self.assertEqual(server.stop(), 0)
            with socket.socket(socket.AF_UNIX) as ended:
                ended.bind(old)
            server = Server(DIGITS, "--admin-socket", old)  # replaces the socket of a server that has ended
            self.assertEqual(answer_of(UnixConnection(old), "POST", "/update_weights_from_disk", {"model_path": "a"})[0], 400)
            self.assertEqual(server.stop(), 0)
            for options in (["--admin-port", "0"], ["--weights-root", folder], ["--admin-socket", old, "--weights-root", path]):
                said = subprocess.run([PROGRAM, "serve", "--model", DIGITS, "--port", "0", *options], capture_output=True, text=True)
                self.assertEqual((said.returncode, said.stdout), (2, ""), (options, said.stderr))


class Socket(unittest.TestCase):
    """The server itself at a Unix-domain socket."""

    def test_only_this_user_can_open_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            words = [PROGRAM, "serve", "--model", DIGITS, "--threads", "1", "--quiet", "--socket", path]
            for end in (subprocess.Popen.kill, subprocess.Popen.terminate):  # the second replaces what the first has left
                server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.assertEqual(server.stdout.readline(), f"listening on unix:{path}\n")
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                status, answer = answer_of(UnixConnection(path), "POST", "/v1/completions", {"prompt": "4,5,6:", "max_tokens": 2})
                self.assertEqual(status, 200, answer)
                evil = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
                status, answer = answer_of(UnixConnection(path), "POST", "/v1/completions", {"prompt": "4,5,6:"}, evil)
                self.assertEqual((status, answer["error"]["code"]), (403, "cross_site"))
                second = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
                self.assertNotEqual(second.returncode, 0)
                self.assertIn("another server listens there", second.stderr)
                end(server)
                server.wait(60)
                server.stdout.close()
            self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
