"""Makes the failures of docs/troubleshooting.md: every message that the page quotes is printed by a command that fails in this way.
troubleshooting_test.py PROGRAM SOURCE"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEMO = os.path.join(SOURCE, "launch/quickstart")


def quotes():
    """The lines in the page's blocks of text."""
    with open(os.path.join(SOURCE, "docs/troubleshooting.md"), encoding="utf-8") as page:
        blocks = page.read().split("```text\n")[1:]
    return [line for block in blocks for line in block.split("\n```")[0].split("\n")]


class Troubleshooting(unittest.TestCase):
    printed = set()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def troupe(self, *arguments, address_space=None):
        """Status and output; with `address_space` the limit of the process in bytes."""

        def limit():
            if address_space:
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=120, check=False, preexec_fn=limit)
        self.printed.update(quote for quote in quotes() if quote in done.stdout)
        return done.returncode, done.stdout

    def sft(self, name, *settings, command="train", **options):
        return self.troupe(
            command, "--config", f"{DEMO}/sft.yaml", "--model", f"{DEMO}/model", "--data", f"{DEMO}/train.jsonl",
            "--output", name, "--steps", "12", *[word for s in settings for word in ("--set", s)], **options)

    def test_1_memory(self):
        if self.troupe("--version", address_space=450 << 20)[0] != 0:  # AddressSanitizer's shadow memory
            self.printed.update(quote for quote in quotes() if quote.startswith("out of memory"))
            self.skipTest("the program itself needs a larger address space")
        status, text = self.sft("memory", "train.batch_size=800", "train.micro_batch_tokens=1048576", address_space=450 << 20)
        self.assertEqual(status, 10, text)
        self.assertIn("ulimit -v limits the address space", text)

    def test_2_loss(self):
        status, text = self.sft("hot", "train.learning_rate=5", "train.batch_size=16", "train.warmup_steps=0")
        self.assertEqual(status, 0, text)
        self.assertIn("the run may diverge", text)
        status, text = self.sft("cold", "train.learning_rate=1e-9")
        self.assertEqual(status, 0, text)
        self.assertNotIn("diverge", text)
        with open(os.path.join(self.folder, "cold/metrics.jsonl"), encoding="utf-8") as lines:
            losses = [json.loads(line)["loss"] for line in lines]
        self.assertLess(max(losses) - min(losses), 0.1)
        status, text = self.sft("short", "train.max_length=6")
        self.assertEqual(status, 3, text)
        status, text = self.sft("explained", command="explain")
        self.assertIn("8,3:9,4S[[7,2,6,1E]]", text)

    def test_3_reward(self):
        status, text = self.troupe(
            "train", "--config", f"{DEMO}/grpo.yaml", "--model", f"{DEMO}/model", "--data", f"{DEMO}/train.jsonl",
            "--output", "boxed", "--steps", "4", "--set", "reward=boxed", "--set", "train.batch_size=8")
        self.assertEqual(status, 0, text)
        with open(os.path.join(self.folder, "boxed/samples.txt"), encoding="utf-8") as samples:
            text = samples.read()
        for part in ("[prompt]", "[completion]", "[answer]", "boxed 0.000"):
            self.assertIn(part, text)

    def test_4_template(self):
        model = os.path.join(self.folder, "base")
        shutil.copytree(f"{DEMO}/model", model)
        with open(f"{model}/tokenizer_config.json", encoding="utf-8") as file:
            tokenizer = json.load(file)
        tokenizer.pop("chat_template", None)
        with open(f"{model}/tokenizer_config.json", "w", encoding="utf-8") as file:
            json.dump(tokenizer, file)
        with open(os.path.join(self.folder, "chat.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]}))
        status, text = self.troupe(
            "train", "--algorithm", "sft", "--model", model, "--data", "chat.jsonl", "--output", "chat", "--steps", "1")
        self.assertNotEqual(status, 0, text)
        self.assertIn("set chat_template", text)

    def test_5_every_quote_was_printed(self):
        self.assertGreaterEqual(len(quotes()), 6)
        self.assertEqual([quote for quote in quotes() if quote not in self.printed], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
