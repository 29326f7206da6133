"""LoRA adapters of troupe serve: serve_adapters_test.py PROGRAM SOURCE. Tokens are compared with troupe generate --adapter."""
import concurrent.futures
import http.client
import json
import os
import subprocess
import sys
import tempfile
import unittest

from served import DIGITS, PROGRAM, Server, UnixConnection, answer_of, run


def trained(folder, name, rank, answer):
    rows, output = os.path.join(folder, name + ".jsonl"), os.path.join(folder, name)
    with open(rows, "w", encoding="utf-8") as file:
        file.write(json.dumps({"prompt": "1,2:", "completion": answer}) + "\n")
    sets = {"lora.rank": rank, "train.batch_size": 1, "train.steps": 4, "train.threads": 1, "train.learning_rate": "3e-2"}
    subprocess.run([PROGRAM, "train", "--algorithm", "sft", "--model", DIGITS, "--data", rows, "--output", output, "--quiet",
                    *(word for key, value in sets.items() for word in ("--set", f"{key}={value}"))], check=True, timeout=120)
    return os.path.join(output, "latest")


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.adapters = {"nine": trained(cls.folder.name, "nine", 4, "9"), "three": trained(cls.folder.name, "three", 8, "3,3,3")}
        cls.server = Server(DIGITS, "--served-model-name", "digits", *(f"--adapter={name}={folder}" for name, folder in cls.adapters.items()))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output
        cls.folder.cleanup()

    def test_models_name_their_parent(self):
        models = json.loads(self.server.get("/v1/models"))["data"]
        self.assertEqual([(model["id"], model["parent"]) for model in models], [("digits", None), ("nine", "digits"), ("three", "digits")])
        self.assertEqual([model["root"] for model in models], ["digits", *self.adapters.values()])
        self.assertEqual(json.loads(self.server.get("/v1/models/three"))["parent"], "digits")
        status, _, body = self.server.request("POST", "/v1/completions", {"model": "five", "prompt": "1"})
        self.assertEqual(status, 404)
        self.assertIn("`digits`, `nine`, `three`", json.loads(body)["error"]["message"])

    def test_a_header_of_sagemaker_names_the_adapter(self):
        for name, status in (("three", 200), ("five", 404)):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            found = answer_of(connection, "POST", "/invocations", {"prompt": "1"}, {"X-Amzn-SageMaker-Adapter-Identifier": name})
            self.assertEqual((found[0], found[1].get("model")), (status, "three" if status == 200 else None))

    def test_concurrent_requests_get_the_tokens_of_their_adapter(self):
        lines = [{"prompt": prompt, "seed": seed, "temperature": 1.0, "max_tokens": 12} for seed, prompt in enumerate(["4,5,6:", "1,2:", "7:"] * 4)]
        expected = {"digits": run(["generate", "--model", DIGITS], *lines)}
        for name, folder in self.adapters.items():
            expected[name] = run(["generate", "--model", DIGITS, "--adapter", folder], *lines)
        self.assertEqual(len({json.dumps([each["ids"] for each in answers]) for answers in expected.values()}), 3)
        with concurrent.futures.ThreadPoolExecutor(36) as pool:
            found = {(name, n): pool.submit(self.server.complete, model=name, return_token_ids=True, logprobs=0, **line)
                     for n, line in enumerate(lines) for name in expected}
        for (name, n), answer in found.items():
            answer = answer.result()
            self.assertEqual(answer["model"], name)
            self.assertEqual(answer["choices"][0]["token_ids"], expected[name][n]["ids"], (name, n))
            self.assertEqual(answer["choices"][0]["logprobs"]["token_logprobs"], expected[name][n]["logprobs"])
        self.assertEqual(self.server.complete(return_token_ids=True, **lines[0])["choices"][0]["token_ids"], expected["digits"][0]["ids"])
        self.assertEqual(self.server.metric("vllm:kv_cache_usage_perc"), 0)

    def test_mistakes_end_the_start(self):
        nine = self.adapters["nine"]
        for options in (["--adapter", nine], ["--adapter", "=" + nine], ["--adapter", "a=" + nine, "--adapter", "a=" + nine],
                        ["--adapter", DIGITS + "=" + nine]):
            said = subprocess.run([PROGRAM, "serve", "--model", DIGITS, "--port", "0", *options], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stdout), (2, ""), (options, said.stderr))
            self.assertIn("--adapter", said.stderr)
        said = subprocess.run([PROGRAM, "serve", "--model", DIGITS, "--port", "0", "--adapter", "a=/nowhere"], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout), (4, ""), said.stderr)

    def test_adapters_come_and_go_while_requests_run(self):
        root = self.folder.name
        path = os.path.join(root, "admin")
        server = Server(DIGITS, "--admin-socket", path, "--weights-root", root)

        def admin(endpoint, **body):
            return answer_of(UnixConnection(path), "POST", endpoint, body)

        line = {"prompt": "4,5,6:", "seed": 3, "temperature": 1.0, "max_tokens": 1500, "ignore_eos": True}
        expected = run(["generate", "--model", DIGITS, "--adapter", self.adapters["nine"]], line)[0]["ids"]
        try:
            self.assertEqual(admin("/v1/load_lora_adapter", lora_name="a", lora_path="nine/latest"), (200, {"success": True}))
            for fields, param in ((dict(lora_name="a", lora_path="nine/latest"), "lora_name"), (dict(lora_path="nine/latest"), "lora_name"),
                                  (dict(lora_name="b"), "lora_path"), (dict(lora_name="b", lora_path="../x"), "lora_path"),
                                  (dict(lora_name="b", lora_path="."), "lora_path")):
                status, answer = admin("/v1/load_lora_adapter", **fields)
                self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
            self.assertIn("adapters", admin("/update_weights_from_disk", model_path="nine/latest")[1]["error"]["message"])
            for _ in range(3):
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    before = server.metric("vllm:generation_tokens_total")
                    answer = pool.submit(server.complete, model="a", return_token_ids=True, **line)
                    while server.metric("vllm:generation_tokens_total") == before:
                        pass
                    self.assertEqual(admin("/v1/unload_lora_adapter", lora_name="a"), (200, {"success": True}))
                    self.assertEqual(server.request("POST", "/v1/completions", dict(line, model="a"))[0], 404)
                    self.assertEqual(answer.result()["choices"][0]["token_ids"], expected)
                self.assertEqual(admin("/v1/unload_lora_adapter", lora_name="a")[0], 400)
                self.assertEqual(admin("/v1/load_lora_adapter", lora_name="a", lora_path="nine/latest")[0], 200)
            self.assertEqual(admin("/pause")[0], 200)
            self.assertEqual(admin("/v1/load_lora_adapter", lora_name="b", lora_path="three/latest")[0], 200)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = pool.submit(server.complete, model="b", prompt="1", max_tokens=1)
                while server.metric("vllm:num_requests_waiting") < 1:
                    pass
                self.assertEqual(admin("/resume")[0], 200)
                self.assertEqual(answer.result()["usage"]["completion_tokens"], 1)
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
