"""troupe chat --url with troupe serve, whose replies are those of troupe chat --model, and with other servers:
serve_chat_test.py PROGRAM SOURCE."""
import http.server
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import threading
import unittest

from served import PROGRAM, STORIES, Server

SETTINGS = ["--greedy", "--max-new-tokens", "12"]
TALK = "/system Be brief\nOnce upon a time\nAnd then?\n/clear\nLily\n/exit\n"


def chat(*options, text, code=0):
    said = subprocess.run([PROGRAM, "chat", *options], input=text, capture_output=True, text=True, timeout=120)
    assert said.returncode == code, (said.returncode, said.stderr)
    return said


class Serve(unittest.TestCase):
    def test_replies_are_those_of_a_local_chat(self):
        def replies(*options):
            # A local chat drops the space at the beginning of a reply.
            return [line.lstrip() for line in chat(*options, *SETTINGS, text=TALK).stdout.splitlines()]

        expected = replies("--model", STORIES, "--threads", "1")
        self.assertEqual(len(expected), 3)
        server = Server(STORIES)
        try:
            for url in (server.url, server.url + "/", server.url + "/v1"):
                self.assertEqual(replies("--url", url), expected)
            said = chat("--url", server.url, "--model", "other", text="Hello\n", code=4)
            self.assertIn("The model `other` does not exist", said.stderr)
        finally:
            server.stop()

    def test_a_full_context_loses_its_oldest_turns(self):
        server = Server(STORIES)
        try:
            questions = "".join(f"Tell me a long story about the number {turn} and a little cat\n" for turn in range(30))
            said = chat("--url", server.url, *SETTINGS, text=questions)
            self.assertEqual(len(said.stdout.splitlines()), 30)
            self.assertIn("(the context is full: the oldest 1 turn is no longer sent)", said.stderr)
        finally:
            server.stop()

    def test_the_key_is_read_from_a_private_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write("# keys\nalice 0123456789abcdef0123\n")
            server = Server(STORIES, "--api-key-file", path)
            try:
                self.assertEqual(len(chat("--url", server.url, "--api-key-file", path, *SETTINGS, text="Hello\n").stdout.splitlines()), 1)
                self.assertIn("status 401", chat("--url", server.url, text="Hello\n", code=3).stderr)
                os.chmod(path, 0o644)
                self.assertIn("chmod 600", chat("--url", server.url, "--api-key-file", path, text="Hello\n", code=2).stderr)
            finally:
                server.stop()

    def test_a_key_is_sent_to_another_host_only_encrypted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "key")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write("0123456789abcdef0123\n")
            # 192.0.2.0/24 is for documentation: nobody answers there.
            to_other = ("--url", "http://192.0.2.1:8000", "--model", "m", "--api-key-file", path)
            said = chat(*to_other, text="Hello\n", code=2).stderr
            self.assertIn("the API key would be sent unencrypted to \"192.0.2.1\"", said)
            self.assertIn("--send-key-unencrypted", said)
            for url in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://127.0.0.1:1"):
                self.assertNotIn("unencrypted", chat("--url", url, "--model", "m", "--api-key-file", path, text="Hello\n", code=7).stderr)


class Other(http.server.BaseHTTPRequestHandler):
    """A server whose answers tests choose."""
    answers, requests = [], []

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(200, b'{"data": [{"id": "first"}, {"id": "second"}]}')

    def do_POST(self):
        self.requests.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
        self.send(*self.answers.pop(0))

    def send(self, status, *pieces):
        self.send_response(status)
        self.end_headers()
        for piece in pieces:
            if isinstance(piece, threading.Event):
                piece.wait(60)
                continue
            self.wfile.write(piece)
            self.wfile.flush()


def event(**delta):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


class Others(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        cls.thread = threading.Thread(target=cls.server.serve_forever)
        cls.thread.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.thread.join()
        cls.server.server_close()

    def talk(self, *answers, options=(), text="Hello\n", code=0):
        Other.answers, Other.requests = list(answers), []
        return chat("--url", f"http://127.0.0.1:{self.server.server_port}", *options, text=text, code=code)

    def test_events_may_arrive_in_any_pieces(self):
        body = b": comment\r\n\r\n" + event(role="assistant", content="") + event(content="na\u00efve") + b"data:[DONE]\n\n"
        said = self.talk((200, *[bytes([byte]) for byte in body]), options=("--temperature", "0.5", "--top-p", "0.9", "--seed", "3"))
        self.assertEqual(said.stdout, "na\u00efve\n")
        path, sent = Other.requests[0]
        self.assertEqual(path, "/v1/chat/completions")
        self.assertEqual(sent, {"temperature": 0.5, "top_p": 0.9, "seed": 3, "model": "first", "stream": True,
                                "messages": [{"role": "user", "content": "Hello"}]})

    def test_mistakes_are_shown(self):
        said = self.talk((400, b'{"object": "error", "message": "too hot"}'), code=3)
        self.assertIn("status 400: too hot", said.stderr)
        self.assertIn("status 500: \"<html>", self.talk((500, b"<html>"), code=3).stderr)
        self.assertIn("no longer", self.talk((200, event(content="a"), b'data: {"error": {"message": "no longer"}}\n\n'), code=3).stderr)
        self.assertIn("before it was complete", self.talk((200, event(content="half")), code=9).stderr)
        self.assertIn("cannot be sent", self.talk(options=("--num-beams", "2"), code=2).stderr)

    def test_turns_that_exceed_the_context_are_left_out(self):
        full = (400, b'{"error": {"message": "This model\'s maximum context length is 8 tokens."}}')
        answer = (200, event(content="a"), b"data: [DONE]\n\n")
        said = self.talk(answer, full, answer, text="One\nTwo\n")
        self.assertEqual(said.stdout, "a\na\n")
        self.assertEqual([len(sent["messages"]) for _, sent in Other.requests], [1, 3, 1])
        self.assertIn("the oldest 1 turn is no longer sent", said.stderr)
        self.assertIn("maximum context", self.talk(full, code=3).stderr)

    def test_ctrl_c_stops_a_reply(self):
        ended = threading.Event()
        Other.answers, self.seen = [(200, event(content="a reply"), ended)], b""
        with tempfile.TemporaryDirectory() as folder:
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ.update(HOME=folder, XDG_STATE_HOME=folder, LC_ALL="C")
                os.execv(PROGRAM, [PROGRAM, "chat", "--url", f"http://127.0.0.1:{self.server.server_port}"])
            try:
                for wanted, typed in ((b"> ", b"Hello\r"), (b"a reply", b"\x03"), (b"(stopped)", b""), (b"> ", b"\x04")):
                    self.wait_for(terminal, wanted)
                    os.write(terminal, typed)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            finally:
                ended.set()
                os.close(terminal)

    def wait_for(self, terminal, text):
        while text not in self.seen:
            self.assertTrue(select.select([terminal], [], [], 60)[0], (text, self.seen))
            self.seen += os.read(terminal, 4096)
        self.seen = self.seen[self.seen.index(text) + len(text):]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
