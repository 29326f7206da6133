"""troupe serve with several ranks under mpirun: serve_ranks_test.py PROGRAM SOURCE. With tensor parallelism tokens are compared with
those of one rank, whose log-probabilities differ in their last bits, and bits with those of the same ranks alone. Pipeline stages
have the bits of one rank."""
import concurrent.futures
import http.client
import json
import os
import shlex
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from served import DIGITS, PROGRAM, SOURCE, STORIES, TOOLS, Server, UnixConnection, answer_of, run, under_mpirun

TOKENS = {"return_token_ids": True}


def tokens_of(answer):
    return [(choice["index"], choice["token_ids"], choice["text"], choice["finish_reason"]) for choice in answer["choices"]]


def ranks_of(server):
    """The processes of the ranks, by rank."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            if parent != server.process.pid:
                continue
            with open(f"/proc/{name}/environ", encoding="utf-8") as file:
                found[int(re.search(r"OMPI_COMM_WORLD_RANK=(\d+)", file.read())[1])] = int(name)
        except (OSError, TypeError):
            pass  # it has ended, or is none
    return [found[rank] for rank in sorted(found)]


def processor_seconds(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waits(process):
    """How often the threads of a process gave up their core to wait."""
    count = 0
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/status", encoding="ascii") as file:
            count += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return count


class Ranks(unittest.TestCase):
    """Two ranks beside one rank."""

    @classmethod
    def setUpClass(cls):
        options = ("--served-model-name", "stories", "--template", TOOLS)
        cls.server, cls.alone = Server(STORIES, *options, ranks=2), Server(STORIES, *options)

    @classmethod
    def tearDownClass(cls):
        codes = cls.server.stop(), cls.alone.stop()
        assert codes == (0, 0), (codes, cls.server.output)

    def tearDown(self):
        self.assertEqual(self.server.metric("vllm:kv_cache_usage_perc"), 0)

    def check(self, path="/v1/completions", **fields):
        """The answer, which has the tokens of one rank."""
        found, expected = (server.post(path, **fields) for server in (self.server, self.alone))
        for answer in (found, expected):
            for key in ("id", "created"):
                del answer[key]
        self.assertEqual(tokens_of(found), tokens_of(expected), fields)
        self.assertEqual(found["usage"]["completion_tokens"], expected["usage"]["completion_tokens"])
        return found, expected

    def test_tokens_are_those_of_one_rank(self):
        settings = {"prompt": "Once upon a time", "temperature": 0.9, "top_p": 0.95, "seed": 17, "max_tokens": 24}
        found, _ = self.check(n=3, logprobs=2, return_weight_versions=True, **TOKENS, **settings)
        samples = run(["generate", "--model", STORIES], dict(settings, num_return_sequences=3))[0]["samples"]
        self.assertEqual([choice["token_ids"] for choice in found["choices"]], [sample["ids"] for sample in samples])
        for choice, sample in zip(found["choices"], samples):
            for own, other in zip(choice["logprobs"]["token_logprobs"], sample["logprobs"]):
                self.assertAlmostEqual(own, other, places=4)
            self.assertEqual(choice["weight_versions"], [0] * len(sample["ids"]))

    def test_settings(self):
        base = dict(TOKENS, prompt="Lily", max_tokens=24, seed=3, temperature=1.0)
        for fields in (dict(temperature=0), dict(presence_penalty=1.5, temperature=0), dict(repetition_penalty=1.3), dict(n=2, best_of=4),
                       dict(logit_bias={"300": 100}), dict(allowed_token_ids=[300, 400], temperature=1.5), dict(stop=["was", "\n"]),
                       dict(stop=["was"], include_stop_str_in_output=True), dict(min_tokens=20, stop_token_ids=[400]),
                       dict(top_k=5), dict(min_p=0.1), dict(ignore_eos=True), dict(prompt=["a", "b", "c"], n=2),
                       dict(skip_special_tokens=False, stop=["</s>"], logit_bias={"2": 5})):
            self.check(**dict(base, **fields))

    def test_concurrent_requests_have_the_bits_that_they_have_alone(self):
        lines = [dict(TOKENS, prompt=f"One day, {name} went to the", seed=seed, temperature=1.0, max_tokens=8 + seed % 5, logprobs=2)
                 for seed, name in enumerate(["Tim", "Lily", "a dog", "the cat"] * 6)]
        alone = [self.server.complete(**line)["choices"] for line in lines]
        with concurrent.futures.ThreadPoolExecutor(len(lines)) as pool:
            found = list(pool.map(lambda line: self.server.complete(**line)["choices"], lines))
        self.assertEqual(found, alone)

    def test_a_known_beginning_of_a_prompt_is_not_computed_again(self):
        fields = {"prompt": "There was a boy named Tim who liked to play with his red car. " * 6, "max_tokens": 8, "seed": 3, "logprobs": 2}
        first = self.server.complete(cache_salt="one", **fields)
        again = self.server.complete(cache_salt="one", **fields)
        self.assertEqual(first["choices"], again["choices"])
        cached = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in (first, again)]
        self.assertEqual(cached, [0, (first["usage"]["prompt_tokens"] - 1) // 16 * 16])

    def test_a_stream_has_the_text_of_the_whole_answer(self):
        fields = {"messages": [{"role": "user", "content": "Tell me a story."}], "seed": 3, "temperature": 1.0, "n": 2, "max_tokens": 20}
        whole, expected = (server.chat(**fields)["choices"] for server in (self.server, self.alone))
        self.assertEqual(whole, expected)
        events = self.server.stream("/v1/chat/completions", **fields)
        for choice in whole:
            mine = [event["choices"][0] for event in events if event["choices"][0]["index"] == choice["index"]]
            self.assertEqual("".join(each["delta"].get("content") or "" for each in mine), choice["message"]["content"])

    def test_constrained_outputs(self):
        schema = {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 6}, "tags": {"type": "array", "items": {"enum": ["a", None]}, "maxItems": 3}}}
        base = dict(TOKENS, prompt="Once", seed=5, temperature=2.0, n=8, max_tokens=100)
        for _ in range(2):  # the second time with the constraint that is there
            found, _ = self.check(structured_outputs={"json": schema}, **base)
            for choice in found["choices"]:
                self.assertLessEqual({"name"}, set(json.loads(choice["text"])))
        self.check(structured_outputs={"regex": " (19|20)[0-9]{2}"}, **base)
        self.check(structured_outputs={"grammar": "root ::= [a-c]{2,5} | \"(\" root \")\""}, **base)
        for number in range(20):  # more than are kept
            found, _ = self.check(structured_outputs={"choice": [f"yes {number}", f"no {number}"]}, **dict(base, n=1))
            self.assertIn(found["choices"][0]["text"], (f"yes {number}", f"no {number}"))

    def test_scores_of_prompts(self):
        items = [[1] + [(7 * n + 3 * t) % 500 + 3 for t in range(2 + 3 * n)] for n in range(12)]
        fields = dict(prompt=items, echo=True, logprobs=1, max_tokens=0, return_tokens_as_token_ids=True)
        found, expected = (server.complete(**fields)["choices"] for server in (self.server, self.alone))
        for one, other in zip(found, expected):
            self.assertEqual(one["logprobs"]["tokens"], other["logprobs"]["tokens"])
            for own, of_one_rank in zip(one["logprobs"]["token_logprobs"][1:], other["logprobs"]["token_logprobs"][1:]):
                self.assertAlmostEqual(own, of_one_rank, places=4)
        self.assertEqual(self.server.complete(**dict(fields, prompt=items[5]))["choices"][0]["logprobs"], found[5]["logprobs"])

    def test_a_request_that_fails_fails_alone(self):
        body = {"prompt": "a", "allowed_token_ids": [2], "min_tokens": 3, "max_tokens": 5}
        line = dict(TOKENS, prompt="One day", seed=1, temperature=1.0, max_tokens=200)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(self.check, **line)
            for _ in range(4):
                status, _, answer = self.server.request("POST", "/v1/completions", body)
                self.assertEqual(status, 400, answer)
            other.result()

    def test_a_disconnected_client_frees_its_pages(self):
        line = dict(TOKENS, prompt="One day", seed=1, temperature=1.0, max_tokens=100)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(self.check, **line)
            for _ in range(3):
                connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
                connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "n": 8, "max_tokens": 500, "ignore_eos": True,
                                                                          "stream": True}))
                connection.getresponse().read(100)
                connection.close()
            other.result()
        deadline = time.monotonic() + 30
        while self.server.metric("vllm:kv_cache_usage_perc") > 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_every_request_of_the_page(self):
        with open(os.path.join(SOURCE, "docs/serving.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```sh\n(curl .*?)```", file.read(), re.DOTALL)
        for block in blocks:
            words = [word for word in shlex.split(block)[1:] if word != "-N"]
            path, body = words[0].removeprefix("http://127.0.0.1:8000"), words[2].replace("my-model", "stories").encode() if words[1:] else None
            self.assertEqual(self.server.request("POST" if body else "GET", path, body)[0], 200, words)

    def test_ranks_that_wait_use_little_of_a_processor(self):
        follower = ranks_of(self.server)[1]
        self.server.complete(prompt="a", max_tokens=1)
        time.sleep(0.5)
        seconds, switches, begin = processor_seconds(follower), waits(follower), time.monotonic()
        time.sleep(3)
        passed = time.monotonic() - begin
        # Processor time depends on the machine: a rank that spins uses all of a core and does not wait, one that waits wakes every 2 ms.
        self.assertLess((waits(follower) - switches) / passed, 1000)
        self.assertLess((processor_seconds(follower) - seconds) / passed, 0.2)


class Options(unittest.TestCase):
    """Servers of two ranks with other options."""

    settings = dict(TOKENS, prompt="The cat sat. The dog sat. The cat sat. The dog", seed=5, max_tokens=60, temperature=0.5, n=2, logprobs=2)

    def choices(self, *options):
        server = Server(STORIES, *options, ranks=2)
        try:
            found = [server.complete(**self.settings)["choices"] for _ in range(2)]
            self.assertEqual(found[0], found[1])
            return found[0], server.metric("vllm:spec_decode_num_accepted_tokens_total")
        finally:
            self.assertEqual(server.stop(), 0, server.output)

    def test_drafts_change_nothing(self):
        expected, accepted = self.choices()
        self.assertEqual(accepted, 0)
        for options in (["--lookup", "6", "--no-prefix-cache"], ["--draft", STORIES, "--draft-tokens", "3"]):
            found, accepted = self.choices(*options)
            self.assertEqual(found, expected)
            self.assertGreater(accepted, 0)

    def test_bf16_and_weights_of_8_bits(self):
        for options in (["--dtype", "bf16"], ["--weights", "int8"]):
            alone = Server(STORIES, *options)
            try:
                expected = alone.complete(**self.settings)["choices"]
            finally:
                alone.stop()
            found, _ = self.choices(*options)
            for one, other in zip(found, expected):
                # The first token has the same prompt; later ones may follow another one.
                self.assertAlmostEqual(one["logprobs"]["token_logprobs"][0], other["logprobs"]["token_logprobs"][0], delta=0.1)

    def test_mistakes_end_the_start(self):
        serve = [PROGRAM, "serve", "--model", STORIES, "--port", "0"]
        cases = [([*serve, "--tp", "2"], "mpirun -n 2 troupe serve"), ([*serve, "--pp", "2"], "mpirun -n 2 troupe serve"),
                 ([*under_mpirun(2), *serve, "--tp", "2", "--pp", "2"], "mpirun -n 4 troupe serve"),
                 ([*under_mpirun(2), *serve], "--tp 1"),
                 ([*under_mpirun(2), *serve, "--tp", "3"], "mpirun -n 3 troupe serve"),
                 ([*under_mpirun(5), *serve, "--tp", "5"], "5"),  # 4 key/value heads
                 ([*under_mpirun(2), *serve, "--tp", "2", "--draft", DIGITS], "the draft model's vocabulary has"),
                 ([*under_mpirun(2), *serve, "--tp", "2", "--lookup", "3", "--draft", STORIES], "exclude each other"),
                 ([*under_mpirun(2), *serve, "--tp", "2", "--adapter", "a=/nowhere"], "/nowhere"),
                 ([*under_mpirun(2), PROGRAM, "serve", "--tp", "2", "--model", "/nowhere"], "/nowhere")]
        for words, message in cases:
            said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertNotIn("listening", said.stdout)
            self.assertIn(message, said.stderr, words)
            self.assertEqual(said.stderr.count("troupe: "), 1, said.stderr)  # one rank reports it

    def test_scores_and_embeddings(self):
        texts = ["The cat sat on the mat.", "Mat the on sat.", "a"]
        server, alone = (Server(STORIES, "--runner", "pooling", ranks=ranks) for ranks in (2, 1))
        try:
            found, expected = ([each["embedding"] for each in one.post("/v1/embeddings", input=texts)["data"]] for one in (server, alone))
            self.assertEqual(len(found), 3)
            for one, other in zip(found, expected):
                self.assertLess(max(abs(a - b) for a, b in zip(one, other)), 1e-5)
            single = server.post("/v1/embeddings", input=texts[1])["data"][0]["embedding"]
            self.assertEqual(single, found[1])
        finally:
            self.assertEqual((server.stop(), alone.stop()), (0, 0))


class Stages(unittest.TestCase):
    """Pipeline stages beside servers without them: equal bits."""

    def compare(self, requests, *options, ranks=1, stages=2):
        """The answers to (path, fields), which are those of as many ranks without stages."""
        servers = [Server(STORIES, "--served-model-name", "stories", *options, ranks=ranks, stages=each) for each in (stages, 1)]
        try:
            found, expected = ([server.post(path, **fields) for path, fields in requests] for server in servers)
        finally:
            codes = [server.stop() for server in servers]
        self.assertEqual(codes, [0, 0], servers[0].output)
        for one, other in zip(found, expected):
            for answer in (one, other):
                answer.pop("id", None), answer.pop("created", None)
        self.assertEqual(found, expected)
        return found

    def test_answers(self):
        line = dict(TOKENS, prompt="Lily", max_tokens=16, seed=3, temperature=1.0, logprobs=2)
        items = [[1] + [(7 * n + 3 * t) % 500 + 3 for t in range(2 + 9 * n)] for n in range(6)]
        lines = [line, dict(line, n=3, presence_penalty=1.5), dict(line, stop=["was"]),
                 dict(line, structured_outputs={"regex": " (19|20)[0-9]{2}"}), dict(prompt=items, seed=3, echo=True, logprobs=3, max_tokens=1)]
        self.compare([("/v1/completions", each) for each in lines + lines])  # the second time with known prompts

    def test_tensor_parallel_stages_and_drafts(self):
        line = dict(TOKENS, prompt="The cat sat. The dog sat. The cat sat. The dog", seed=5, max_tokens=24, temperature=0.5, n=2, logprobs=2)
        self.compare([("/v1/completions", line)], "--lookup", "6", "--dtype", "bf16", ranks=2)

    def test_embeddings(self):
        texts = ["The cat sat on the mat.", "Mat the on sat.", "a"]
        self.compare([("/v1/embeddings", dict(input=texts))], "--runner", "pooling", stages=3)


def trained(folder, name, sets, answer):
    """The checkpoint of a short run."""
    rows, output = os.path.join(folder, name + ".jsonl"), os.path.join(folder, name)
    with open(rows, "w", encoding="utf-8") as file:
        file.write(json.dumps({"prompt": "1,2:", "completion": answer}) + "\n")
    sets = dict({"train.batch_size": 1, "train.steps": 4, "train.threads": 1}, **sets)
    subprocess.run([PROGRAM, "train", "--algorithm", "sft", "--model", DIGITS, "--data", rows, "--output", output, "--quiet",
                    *(word for key, value in sets.items() for word in ("--set", f"{key}={value}"))], check=True, timeout=120)
    return os.path.join(output, "latest")


class Changes(unittest.TestCase):
    """Adapters, other weights and pauses, while requests run."""

    line = dict(TOKENS, prompt="4,5,6:", seed=3, temperature=1.0, max_tokens=16)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.root = cls.folder.name
        cls.adapters = {name: trained(root, name, {"lora.rank": rank, "train.learning_rate": "3e-2"}, answer)
                        for name, rank, answer in (("nine", 4, "9"), ("three", 8, "3,3,3"))}
        cls.second = os.path.join(root, "second")
        shutil.copytree(trained(root, "weights", {"train.learning_rate": "1e-2"}, "9"), cls.second)
        shutil.copytree(DIGITS, os.path.join(root, "first"))
        shutil.copytree(STORIES, os.path.join(root, "stories"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, *options, ranks=2, stages=1):
        self.socket = os.path.join(self.root, "admin")
        self.server = Server(DIGITS, "--served-model-name", "digits", "--admin-socket", self.socket, "--weights-root", self.root, *options,
                             ranks=ranks, stages=stages)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0, self.server.output))

    def admin(self, path, **body):
        return answer_of(UnixConnection(self.socket), "POST", path, body)

    def expected(self, *options):
        return run(["generate", "--model", *options], {key: value for key, value in self.line.items() if key not in TOKENS})[0]["ids"]

    def found(self, **fields):
        return self.server.complete(**dict(self.line, **fields))["choices"][0]["token_ids"]

    def test_adapters(self):
        self.start(*(f"--adapter={name}={folder}" for name, folder in self.adapters.items()))
        expected = {name: self.expected(DIGITS, "--adapter", folder) for name, folder in self.adapters.items()}
        expected["digits"] = self.expected(DIGITS)
        self.assertEqual(len(set(map(tuple, expected.values()))), 3)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = [(name, pool.submit(self.found, model=name)) for name in list(expected) * 4]
            for name, answer in answers:
                self.assertEqual(answer.result(), expected[name], name)
            long = dict(max_tokens=150, ignore_eos=True, model="nine")
            whole = self.found(**long)
            before = self.server.metric("vllm:generation_tokens_total")
            running = pool.submit(self.found, **long)
            while self.server.metric("vllm:generation_tokens_total") == before:
                pass
            self.assertEqual(self.admin("/v1/unload_lora_adapter", lora_name="nine")[0], 200)
            self.assertEqual(self.server.request("POST", "/v1/completions", dict(self.line, model="nine"))[0], 404)
            self.assertEqual(self.admin("/v1/load_lora_adapter", lora_name="other", lora_path="nine/latest")[0], 200)
            self.assertEqual(self.found(model="other"), expected["nine"])
            self.assertEqual(running.result(), whole)
        status, answer = self.admin("/v1/load_lora_adapter", lora_name="b", lora_path="stories")
        self.assertEqual((status, answer["error"]["param"]), (400, "lora_path"), answer)
        self.assertNotIn("rank 1", answer["error"]["message"])
        self.assertEqual(self.found(model="three"), expected["three"])

    def test_adapters_and_weights_of_stages(self):
        self.start("--adapter=nine=" + self.adapters["nine"], ranks=1, stages=2)
        of_one_stage = {"lora.rank": 4, "lora.targets": "[layers.0.mlp.down_proj]", "train.learning_rate": "1e-1"}
        adapters = dict(self.adapters, one=trained(self.root, "one", of_one_stage, "9"))
        for name in ("three", "one"):
            self.assertEqual(self.admin("/v1/load_lora_adapter", lora_name=name, lora_path=f"{name}/latest")[0], 200)
        expected = {name: self.expected(DIGITS, "--adapter", folder) for name, folder in adapters.items()}
        self.assertNotEqual(expected["one"], self.expected(DIGITS))
        for name in adapters:
            self.assertEqual(self.found(model=name), expected[name], name)
        self.assertEqual(self.admin("/v1/load_lora_adapter", lora_name="b", lora_path="stories")[0], 400)
        self.assertEqual(self.found(), self.expected(DIGITS))
        for name in adapters:
            self.assertEqual(self.admin("/v1/unload_lora_adapter", lora_name=name)[0], 200)
        self.assertEqual(self.admin("/update_weights_from_disk", model_path="second")[0], 200)
        self.assertEqual(self.found(), self.expected(os.path.join(self.root, "second")))

    def test_weights_and_pauses(self):
        self.start()
        expected = {name: self.expected(os.path.join(self.root, name)) for name in ("first", "second")}
        self.assertNotEqual(expected["first"], expected["second"])
        self.assertEqual(self.found(), expected["first"])
        self.assertEqual(self.admin("/update_weights_from_disk", model_path="second"), (200, {"success": True, "weight_version": 1}))
        self.assertEqual(self.found(), expected["second"])
        self.assertEqual(self.admin("/update_weights_from_disk", model_path="stories")[0], 400)
        self.assertEqual(self.found(), expected["second"])
        body = dict(prompt="4,5,6:", temperature=1.0, max_tokens=1500, ignore_eos=True, return_weight_versions=True)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            before = self.server.metric("vllm:generation_tokens_total")
            answers = [pool.submit(self.server.complete, seed=seed, **body) for seed in range(4)]
            while self.server.metric("vllm:generation_tokens_total") < before + 20:
                pass
            self.assertEqual(self.admin("/pause")[0], 200)
            self.assertEqual(self.admin("/update_weights_from_disk", model_path="first")[1]["weight_version"], 2)
            self.assertEqual(self.admin("/resume")[0], 200)
            versions = [answer.result()["choices"][0]["weight_versions"] for answer in answers]
        for each in versions:
            self.assertEqual(each, sorted(each))
            self.assertEqual(len(each), 1500)
            self.assertEqual(each[-1], 2)
        # A request may arrive after the pause; those that made the tokens counted above did not.
        self.assertIn(1, [each[0] for each in versions])
        self.assertEqual(self.found(), expected["first"])


class Ends(unittest.TestCase):
    """How a server of two ranks ends."""

    def setUp(self):
        self.server = Server(STORIES, ranks=2)
        self.ranks = ranks_of(self.server)
        self.assertEqual(len(self.ranks), 2)

    def tearDown(self):
        self.server.process.kill()
        self.server.process.communicate()
        self.check_that_no_rank_is_left()

    def check_that_no_rank_is_left(self):
        deadline = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{process}") for process in self.ranks):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def busy(self, pool, tokens=100):
        """A request of which some tokens are there."""
        answer = pool.submit(self.server.complete, prompt="Once", max_tokens=tokens, ignore_eos=True)
        while self.server.metric("vllm:generation_tokens_total") == 0:
            pass
        return answer

    def test_requests_end_after_a_signal(self):
        for send in (lambda: self.server.process.send_signal(signal.SIGUSR1), lambda: os.kill(self.ranks[0], signal.SIGTERM)):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = self.busy(pool)
                send()
                self.assertEqual(answer.result()["usage"]["completion_tokens"], 100)
            said = self.server.process.communicate(timeout=60)
            self.assertEqual(self.server.process.returncode, 0, said)
            self.check_that_no_rank_is_left()
            self.server = Server(STORIES, ranks=2)
            self.ranks = ranks_of(self.server)

    def test_sigterm_of_mpirun_ends_all_ranks(self):
        self.server.process.send_signal(signal.SIGTERM)
        self.server.process.communicate(timeout=60)
        self.check_that_no_rank_is_left()

    def test_a_rank_that_dies_is_named(self):
        for is_busy in (False, True):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = self.busy(pool, 500) if is_busy else None
                os.kill(self.ranks[1], signal.SIGKILL)
                _, said = self.server.process.communicate(timeout=60)
                self.assertNotEqual(self.server.process.returncode, 0)
                self.assertIn(f"rank 1 of 2 (process {self.ranks[1]}) has ended", said)
                if is_busy:
                    self.assertIsNotNone(answer.exception())
            self.check_that_no_rank_is_left()
            self.server = Server(STORIES, ranks=2)
            self.ranks = ranks_of(self.server)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("SKIP: mpirun is not installed (apt-get install openmpi-bin)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
