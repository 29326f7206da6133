"""The suite mindspeed and the program `evaluation` on rows and examples made here. Usage: mindspeed_test.py PROGRAM SOURCE"""

import csv
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
MODEL = SOURCE / "tests/data/models/tinystories-656k"
RECOUNT = SOURCE / "tests/evaluation/mindspeed_recount.py"
TIMEOUT = 300
sys.path.insert(0, str(SOURCE / "tests/evaluation"))

from mindspeed_files import make_checkout, make_rows, write_lines, write_table  # noqa: E402  pylint: disable=wrong-import-position


class Mindspeed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.rows, cls.checkout = cls.folder / "rows", cls.folder / "checkout"
        make_rows(cls.rows, random.Random(3))
        make_checkout(cls.checkout)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_suite(self, *words):
        return subprocess.run([PROGRAM, "eval", "--suite", "mindspeed", "--model", MODEL, "--task-data", self.rows, *map(str, words)],
                              capture_output=True, text=True, timeout=TIMEOUT)

    def evaluated(self, name, *words):
        output = self.folder / name
        done = self.run_suite("--fewshot-data", self.checkout, "--output", output, "--log-samples", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        (file,) = output.glob("results_*.json")
        return done, json.loads(file.read_text(encoding="utf-8")), output

    def recounted(self, output):
        done = subprocess.run([sys.executable, "-B", RECOUNT, output, self.checkout], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 differences", done.stdout)
        return done.stdout

    def prompts(self, *words):
        done = self.run_suite("--print-prompt", 9, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            self.assertEqual(line["sha256"], hashlib.sha256(line["context"].encode()).hexdigest())
        return lines

    def test_direct_mode_equals_a_recount(self):
        done, results, output = self.evaluated("direct", "--task", "mmlu,mmlu_ppl,ceval,cmmlu,boolq,bbh,agieval,gsm8k,hellaswag", "--max-new-tokens", 12)
        self.assertIn(" items, 0 differences", self.recounted(output))
        self.assertEqual(results["config"]["skipped_subjects"], ["mmlu_unknown", "mmlu_ppl_unknown"])
        self.assertGreater(results["config"]["pandas_cells"], 0)
        self.assertEqual(set(results["config"]["answer_tokens"]), {"Yes", "No"})
        self.assertIn("defects of the reference: reproduced", done.stdout)
        self.assertEqual(results["n-samples"]["mmlu_virology"], {"original": 7, "effective": 7})

    def test_other_modes_equal_a_recount(self):
        for mode, tasks in (("alternative", "mmlu,ceval,cmmlu,boolq,agieval"), ("cot", "bbh,gsm8k")):
            for words in ((), ("--fixed",), ("--lenient", "--no-pandas-cells")):
                _, results, output = self.evaluated("-".join((mode, *words)), "--task", tasks, "--mode", mode, "--max-new-tokens", 12, *words)
                self.recounted(output)
                self.assertEqual(results["config"]["defects"], "corrected" if words == ("--fixed",) else "reproduced")
                self.assertEqual(results["config"]["pandas_cells"] is None, "--no-pandas-cells" in words)

    def test_threads_change_nothing(self):
        reports = []
        for threads in (1, 2, 7):
            _, results, output = self.evaluated(f"threads{threads}", "--task", "mmlu,boolq,gsm8k", "--max-new-tokens", 8, "--threads", threads)
            del results["date"]
            reports.append((results, (output / "items.jsonl").read_bytes()))
        self.assertTrue(reports[0] == reports[1] == reports[2])

    def test_cells_are_as_pandas_prints_them(self):
        row = next(csv.reader((self.rows / "mmlu/test/virology_test.csv").read_text(encoding="utf-8").splitlines()))
        for words, none in (((), "nan"), (("--no-pandas-cells",), "None")):
            (line, *_) = self.prompts("--task", "mmlu", "--fewshot-data", self.checkout, *words)
            shown = [none if cell == "None" else cell for cell in row[1:5]]
            choices = "".join(f"\n{letter}. {cell}" for letter, cell in zip("ABCD", shown))
            self.assertEqual(line["context"], f"Questions about  virology.\n\nX?\nA. 1\nAnswer: A\n\n{row[0]}{choices}\nAnswer:")

    def test_dialogues_have_five_examples(self):
        template = self.folder / "template.jinja"
        template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}")
        (line, *_) = self.prompts("--task", "mmlu", "--mode", "chat", "--chat-template", template)
        self.assertEqual(len(re.findall("<user>", line["context"])), 6)
        self.assertTrue(line["context"].startswith("<user>The following are multiple choice questions (with answers) about unknown.\n\nWhich"))
        self.assertTrue(line["context"].endswith("\nAnswer: <assistant>"))
        drawn = [int(n) for n in re.findall(r"card (\d+)\?", line["context"])[:5]]
        self.assertEqual(drawn, [2, 1, 5, 0, 4])  # NumPy: RandomState(1234).permutation(6)
        (line, *_) = self.prompts("--task", "ceval", "--mode", "chat", "--chat-template", template, "--eval-language", "zh")
        self.assertIn("<user>以下是中国关于logic考试的单项选择题，请选出其中的正确答案。\n\n", line["context"])

    def test_a_template_of_the_model_is_used_and_named(self):
        model = self.folder / "templated"
        shutil.copytree(MODEL, model)
        config = json.loads((model / "tokenizer_config.json").read_text())
        config["chat_template"] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
        (model / "tokenizer_config.json").write_text(json.dumps(config))
        done = self.run_suite("--model", model, "--task", "boolq", "--print-prompt", 1)
        self.assertNotEqual(done.returncode, 0)  # --model twice
        words = [PROGRAM, "eval", "--suite", "mindspeed", "--model", model, "--task-data", self.rows, "--task", "boolq", "--print-prompt", "1"]
        plain = "Ada has 0 cats.\nQuestion: is ada old?\nAnswer:"
        for more, context in (([], "[user]" + plain), (["--no-chat-template"], plain)):
            done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(json.loads(done.stdout)["context"], context)
            self.assertEqual("--no-chat-template leaves the template out" in done.stderr, not more)

    def test_a_limit_of_bbh_divides_by_all_rows(self):
        _, results, output = self.evaluated("limit", "--task", "bbh", "--limit", 2, "--max-new-tokens", 4)
        self.recounted(output)
        self.assertEqual(results["n-samples"]["bbh_date_understanding"], {"original": 5, "effective": 5})
        _, results, output = self.evaluated("limit_fixed", "--task", "bbh", "--limit", 2, "--max-new-tokens", 4, "--fixed")
        self.recounted(output)
        self.assertEqual(results["n-samples"]["bbh_date_understanding"], {"original": 5, "effective": 2})

    def test_programs_run_in_the_sandbox(self):
        done = self.run_suite("--task", "human_eval")
        self.assertIn("--allow-code", done.stderr)
        for mode in ("direct", "alternative"):
            done = self.run_suite("--task", "human_eval", "--mode", mode, "--allow-code", "--max-new-tokens", 6, "--json")
            if done.returncode != 0 and ("sandbox" in done.stderr or "namespaces" in done.stderr):
                self.skipTest("no isolation here: " + done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["n-samples"]["human_eval_HumanEval"]["effective"], 2)

    def test_what_does_not_fit_is_refused(self):
        checkout = ("--fewshot-data", self.checkout)
        bad = self.folder / "bad"
        write_table(bad / "mmlu/test/virology_test.csv", [["only", "two"]])
        write_lines(bad / "gsm8k/test.jsonl", [{"question": "x"}])
        (bad / "ceval/val").mkdir(parents=True)
        (bad / "ceval/val/logic_val.csv").write_text("")
        for words, message in (
            (("--task", "mmlu"), "give --fewshot-data"),
            (("--task", "mmlu", "--fewshot-data", self.rows), "no mmlu_5shot_template.json"),
            (("--task", "mmlv", *checkout), "did you mean mmlu?"),
            (("--task", "gsm8k", "--mode", "alternative", *checkout), "gsm8k has no mode alternative"),
            (("--task", "mmlu", "--num-fewshot", 2, *checkout), "--num-fewshot belongs to the suite lm-eval"),
            (("--task", "mmlu", "--mode", "chat"), "chat template"),
        ):
            done = self.run_suite(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(message, done.stderr, words)
        for words, message in ((("--task", "mmlu"), "virology_test.csv:1"), (("--task", "gsm8k"), "test.jsonl:1: expected a column \"answer\""),
                               (("--task", "ceval"), "logic_val.csv"), (("--task", "bbh"), "bbh: no file")):
            done = subprocess.run([PROGRAM, "eval", "--suite", "mindspeed", "--model", MODEL, "--task-data", bad, "--fewshot-data", self.checkout, *words],
                                  capture_output=True, text=True, timeout=TIMEOUT)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(message, done.stderr, words)
        done = subprocess.run([PROGRAM, "eval", "--model", MODEL, "--task-data", self.rows, "--task", "boolq", "--fixed"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("--fixed belongs to the suite mindspeed", done.stderr)

    def evaluation(self, *words, **settings):
        link = PROGRAM.parent / "megatron/evaluation"
        return subprocess.run([link, "--load", MODEL, "--tokenizer-name-or-path", MODEL, "--tokenizer-type", "PretrainedFromHF", *map(str, words)],
                              capture_output=True, text=True, timeout=TIMEOUT, cwd=self.checkout, **settings)

    def test_the_program_evaluation_prints_the_table_of_the_reference(self):
        config = json.loads((MODEL / "config.json").read_text())
        shape = ["--num-layers", config["num_hidden_layers"], "--hidden-size", config["hidden_size"], "--num-attention-heads", config["num_attention_heads"],
                 "--max-position-embeddings", 256, "--seq-length", 256, "--norm-epsilon", config["rms_norm_eps"], "--rotary-base", int(config.get("rope_theta", 10000))]
        published = ["--tensor-model-parallel-size", 8, "--pipeline-model-parallel-size", 1, "--use-mcore-models", "--swiglu", "--disable-bias-linear", "--normalization", "RMSNorm",
                     "--micro-batch-size", 1, "--evaluation-batch-size", 1, "--no-load-rng", "--no-load-optim", "--exit-on-missing-checkpoint", "--no-chat-template", "--seed", 42]
        output = self.folder / "evaluated"
        done = self.evaluation("--task", "mmlu", "--task-data-path", self.rows / "mmlu/test", "--max-new-tokens", 2, *shape, *published, f"output={output}")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^mmlu acc = \d/7=")
        self.assertEqual(lines[1].split(), ["subject", "question_n", "acc"])
        self.assertEqual(lines[2].split()[:3], ["0", "virology", "7"])
        self.assertEqual(lines[3].split()[:3], ["1", "total", "7"])
        self.recounted(output)
        right = int(re.match(r"mmlu acc = (\d)", lines[0]).group(1))
        self.assertEqual(lines[3].split()[3], f"{right / 7:.6f}")

    def test_the_program_evaluation_takes_its_modes_and_refuses_the_rest(self):
        words = ["--task-data-path", self.rows / "mmlu/test", "--max-new-tokens", 2]
        done = self.evaluation("--task", "mmlu", "--alternative-prompt", *words)
        self.assertIn("mode alternative; defects of the reference: reproduced; lenient", done.stdout, done.stderr)
        done = self.evaluation("--task", "mmlu", "--alternative-prompt", "--origin-postprocess", *words)
        self.assertNotIn("lenient", done.stdout)
        for more, message in ((("--task", "mmlu_stem"), "has no such task"), (("--task", "mmlu", "--evaluation-batch-size", 4), "--evaluation-batch-size 4"),
                              (("--task", "boolq", "--prompt-type", "qwen"), "--prompt-type with --task boolq"), (("--task", "human_eval"), "--allow-code")):
            done = self.evaluation(*more, *(words if more[1] != "human_eval" else ["--task-data-path", self.rows / "human_eval"]), env={**os.environ, "HF_ALLOW_CODE_EVAL": ""})
            self.assertNotEqual(done.returncode, 0, more)
            self.assertIn(message, done.stderr, more)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
