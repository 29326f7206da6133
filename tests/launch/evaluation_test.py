"""`troupe eval --task`: reports, continuation, refusals, code, comparison. Usage: evaluation_test.py PROGRAM SOURCE [all]

all: with the hostile programs that take seconds each.
"""

import json
import math
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "tests/data/models/tinystories-656k"
ROWS = SOURCE / "tests/data/evaluation/rows"
TASKS = "mmlu_virology,hellaswag,boolq,agieval_aqua_rat,agieval_math,wikitext"
TIMEOUT = 300
ALL = sys.argv[3:] == ["all"]


def command(*words, model=MODEL, data=ROWS):
    return [PROGRAM, "eval", "--model", str(model), "--task-data", str(data), *map(str, words)]


def run(*words, **settings):
    return subprocess.run(command(*words, **settings), capture_output=True, text=True, timeout=TIMEOUT)


def results_in(folder):
    """results_*.json without its date, and the samples of each task."""
    (file,) = folder.glob("results_*.json")
    samples = {f.name.split("_2")[0].removeprefix("samples_"): [json.loads(line) for line in f.read_text(encoding="utf-8").splitlines()]
               for f in folder.glob("samples_*.jsonl")}
    results = json.loads(file.read_text(encoding="utf-8"))
    del results["date"]
    return results, samples


class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        done = run("--task", TASKS, "--output", cls.folder / "first", "--log-samples", "--threads", 1)
        assert done.returncode == 0, done.stderr
        cls.table, cls.log = done.stdout, done.stderr
        cls.first = results_in(cls.folder / "first")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_scores_are_those_of_a_recount(self):
        results, samples = self.first
        for task, lines in samples.items():
            values = {}
            for line in lines:
                for metric in line["metrics"]:
                    values.setdefault((metric, line["filter"]), []).append(line[metric])
            for (metric, name), all_of in values.items():
                entry = results["results"][task]
                if metric.endswith("perplexity"):
                    mean = math.exp(-sum(v[0] for v in all_of) / sum(v[1] for v in all_of))
                elif metric == "bits_per_byte":
                    mean = -sum(v[0] for v in all_of) / sum(v[1] for v in all_of) / math.log(2)
                else:
                    mean = sum(all_of) / len(all_of)
                    deviation = math.sqrt(sum((v - mean) ** 2 for v in all_of) / (len(all_of) - 1))
                    self.assertAlmostEqual(entry[f"{metric}_stderr,{name}"], deviation / math.sqrt(len(all_of)), 12)
                self.assertAlmostEqual(entry[f"{metric},{name}"] / mean if mean else entry[f"{metric},{name}"], 1 if mean else 0, 12)
        self.assertEqual(results["n-samples"]["mmlu_virology"], {"original": 14, "effective": 14})
        self.assertIn("virology", self.table)
        self.assertEqual(set(samples), set(TASKS.split(",")))

    def test_verdicts_follow_from_the_sums(self):
        _, samples = self.first
        for line in samples["mmlu_virology"] + samples["hellaswag"]:
            sums = [float(one[0][0]) for one in line["resps"]]
            self.assertEqual(line["acc"], float(sums.index(max(sums)) == int(line["target"])))

    def test_cut_and_unanswered_items_are_counted(self):
        results, _ = self.first
        counts = results["troupe"]
        self.assertGreater(counts["wikitext"]["truncated"], 0)
        self.assertIn("wikitext: ", self.table)
        low, high = counts["boolq"]["wilson_95"]["acc,none"]
        self.assertTrue(0 <= low < results["results"]["boolq"]["acc,none"] < high <= 1)

    def test_threads_change_nothing(self):
        for threads in (2, 7):
            output = self.folder / f"threads{threads}"
            self.assertEqual(run("--task", TASKS, "--output", output, "--log-samples", "--threads", threads).returncode, 0)
            self.assertEqual(results_in(output), self.first)

    def test_an_interrupted_evaluation_continues_at_the_next_item(self):
        lines = (self.folder / "first/items.jsonl").read_bytes().splitlines(keepends=True)
        for kept in range(0, len(lines), 1 if ALL else 7):
            output = self.folder / f"kept{kept}"
            output.mkdir()
            shutil.copy(self.folder / "first/items.jsonl.settings.json", output)
            (output / "items.jsonl").write_bytes(b"".join(lines[:kept]) + (lines[kept][:20] if kept else b""))
            done = run("--task", TASKS, "--output", output, "--log-samples")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(results_in(output), self.first)
            self.assertEqual((output / "items.jsonl").read_bytes(), b"".join(lines))

    def test_a_killed_evaluation_continues(self):
        output = self.folder / "killed"
        words = ("--task", "gsm8k_cot,gsm8k_cot_llama,wikitext", "--output", output, "--log-samples")
        process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + TIMEOUT
        items = output / "items.jsonl"
        while process.poll() is None and not (items.exists() and items.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT)
        self.assertEqual(run(*words).returncode, 0)
        whole = self.folder / "whole"
        self.assertEqual(run(*words[:2], "--output", whole, "--log-samples").returncode, 0)
        self.assertEqual(sorted(results_in(output)[0]["results"]), sorted(results_in(whole)[0]["results"]))
        self.assertEqual(results_in(output), results_in(whole))

    @unittest.skipUnless(ALL, "half a minute: tests/long.sh evaluation")
    def test_an_evaluation_killed_at_each_item_ends_in_the_same_report(self):
        output, words = self.folder / "killed_often", ("--task", "gsm8k_cot,boolq,hellaswag,mmlu_virology,wikitext", "--log-samples")
        items, kills = output / "items.jsonl", 0
        while True:
            before = items.read_bytes().count(b"\n") if items.exists() else -1
            process = subprocess.Popen(command(*words, "--output", output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + TIMEOUT
            while process.poll() is None and time.monotonic() < deadline:
                if items.exists() and items.read_bytes().count(b"\n") > max(before, 0):
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.001)
            process.wait(TIMEOUT)
            if process.returncode == 0:
                break
            self.assertEqual(process.returncode, -signal.SIGKILL)
            kills += 1
        whole = self.folder / "whole_often"
        self.assertEqual(run(*words, "--output", whole).returncode, 0)
        self.assertEqual(results_in(output), results_in(whole))
        self.assertEqual(items.read_bytes(), (whole / "items.jsonl").read_bytes())
        print(f"{kills} kills in {items.read_bytes().count(10)} items", file=sys.stderr)

    def test_other_settings_are_not_continued(self):
        done = run("--task", "boolq", "--num-fewshot", 2, "--output", self.folder / "first")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("written with other settings", done.stderr)

    def test_groups_have_the_scores_of_their_tasks(self):
        data = self.folder / "group_data"
        shutil.copytree(ROWS, data)
        tasks = self.folder / "tasks"
        tasks.mkdir()
        (tasks / "pair.yaml").write_text("group: pair\ntask: [mmlu_virology, mmlu_high_school_physics]\n"
                                         "aggregate_metric_list:\n  - metric: acc\n    weight_by_size: true\n")
        done = run("--task", "pair", "--include-path", tasks, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        members = [found["results"][name]["acc,none"] for name in ("mmlu_virology", "mmlu_high_school_physics")]
        self.assertAlmostEqual(found["groups"]["pair"]["acc,none"], sum(members) / 2, 12)
        self.assertEqual(found["group_subtasks"]["pair"], ["mmlu_virology", "mmlu_high_school_physics"])

    def test_requests_that_contradict_themselves_are_refused(self):
        file = self.folder / "file"
        file.write_text("x")
        for words, message in (
            (("--task", "boolq", "--output", file), "is a file"),
            (("--task", "boolq", "--mode", "chat"), "--mode belongs to the suite mindspeed"),
            (("--task", "boolq", "--url", "http://x"), "--url does not exist yet"),
            (("--task", "boolq", "--fewshot-as-multiturn"), "--fewshot-as-multiturn needs --apply-chat-template"),
            (("--task", "boolq", "--chat-template", "chatml"), "--chat-template needs --apply-chat-template"),
            (("--task", "boolq", "--apply-chat-template"), "has no chat template"),
            (("--task", "boolq", "--max-new-tokens", 4), "--max-new-tokens belongs to the suite mindspeed"),
            (("--task", "boolq", "--data", "x.jsonl"), "leave out --data"),
            (("--task", "humaneval"), "--allow-code"),
            (("--task", "bool"), "did you mean boolq?"),
            (("--task", "arc_challenge"), "no file of the split test"),
            (("--task", "mmlu_virology", "--num-fewshot", 9), "9 examples are needed and there are 6"),
            (("--reward", "exact_match"), "--data is required"),
        ):
            done = run(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(message, done.stderr, words)

    def test_dialogues_are_those_of_the_reference(self):
        """Against lm-evaluation-harness 0.4.13 with a template that takes a system message and one that refuses it."""
        expected = {}
        for line in (SOURCE / "tests/data/evaluation/dialogues.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            expected.setdefault((row["template"], row["turns"], row["task"], row["shots"]), {})[row["doc_id"]] = (row["context"], row["continuations"])
        self.assertEqual(len(expected), 16)
        for (template, turns, task, shots), items in expected.items():
            words = ["--task", task, "--apply-chat-template", "--chat-template", SOURCE / "tests/data/chat_templates" / template, "--system-instruction", "Be brief.",
                     "--print-prompt", 99, *(["--fewshot-as-multiturn"] if turns else []), *(["--num-fewshot", shots] if shots else [])]
            done = run(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = {item["doc_id"]: (item["sha256"][:16], item["continuations"]) for item in map(json.loads, done.stdout.splitlines())}
            self.assertEqual(found, items, (template, turns, task, done.stdout[:2000]))

    def test_chosen_items_are_evaluated(self):
        chosen = self.folder / "samples.json"
        chosen.write_text('{"boolq": [5, 2]}')
        done = run("--task", "boolq", "--samples", chosen, "--print-prompt", 9)
        self.assertEqual([json.loads(line)["doc_id"] for line in done.stdout.splitlines()], [2, 5])
        done = run("--task", "boolq", "--limit", 0.25, "--json")
        self.assertEqual(json.loads(done.stdout)["n-samples"]["boolq"], {"original": 12, "effective": 3})

    def test_choices_share_the_context(self):
        """Of a context of 2,000 tokens at most one page is computed again for each further choice."""
        tasks = self.folder / "long"
        tasks.mkdir()
        (tasks / "rows.jsonl").write_text(json.dumps({"text": "The cat sat on the mat. " * 420}) + "\n")
        (tasks / "long.yaml").write_text("task: long\ndataset_path: rows.jsonl\ntest_split: test\noutput_type: multiple_choice\ndoc_to_text: text\n"
                                         "doc_to_target: 1\ndoc_to_choice: [\"yes it is\", \"no it was not\", \"a dog\", \"two cats\"]\n")
        model = self.folder / "longer"
        shutil.copytree(MODEL, model)
        config = json.loads((model / "config.json").read_text())
        config["max_position_embeddings"] = 8192
        (model / "config.json").write_text(json.dumps(config))
        done = run("--task", "long", "--include-path", tasks, model=model)
        self.assertEqual(done.returncode, 0, done.stderr)
        computed, cached, asked = map(int, re.search(r"computed (\d+) tokens; the cache had (\d+) of the (\d+)", done.stderr).groups())
        context = asked // 4
        self.assertGreater(context, 2000)
        self.assertLess(computed, context + 4 * 16 + 40)
        self.assertEqual(computed + cached, asked)

    def test_programs_pass_only_by_their_tests(self):
        """The model's token is a comment: what counts is the code before it."""
        tasks = self.folder / "code"
        tasks.mkdir()
        programs = {
            "right": "def f():\n    return 1\n# ",
            "wrong": "def f():\n    return 2\n# ",
            "loop": "while True:\n    pass\n# ",
            "exits": "import os, sys\nos._exit(0)\n# ",
            "leaves": "raise SystemExit(0)\n# ",
            "forks": "import os\nwhile True:\n    os.fork()\n# ",
            "memory": "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n# ",
            "prints": "import os\nwhile True:\n    os.write(1, b'{\"id\": 0, \"reward\": 1}\\n' * 1000)\n# ",
            "network": "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)\ndef f():\n    return 1\n# ",
        }
        if not ALL:
            for slow in ("forks", "memory", "prints"):
                del programs[slow]
        (tasks / "rows.jsonl").write_text("".join(json.dumps({"name": n, "prompt": p, "test": "assert f() == 1"}) + "\n" for n, p in programs.items()))
        (tasks / "code.yaml").write_text("task: code\ndataset_path: rows.jsonl\ntest_split: test\ndoc_to_text: prompt\ndoc_to_target: test\n"
                                         "generation_kwargs: {until: [\"\\n\"], max_gen_toks: 1, do_sample: false}\n"
                                         "metric_list:\n  - metric: pass_at_k\n    k: [1]\n"
                                         "filter_list:\n  - name: program\n    filter:\n      - function: humaneval\n")
        self.assertIn("--allow-code", run("--task", "code", "--include-path", tasks).stderr)
        done = run("--task", "code", "--include-path", tasks, "--allow-code", "--output", self.folder / "code_out", "--log-samples")
        if "namespaces" in done.stderr or "sandbox" in done.stderr and done.returncode != 0:
            self.skipTest("no isolation here: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, samples = results_in(self.folder / "code_out")
        self.assertEqual([s["doc"]["name"] for s in samples["code"] if s["pass@1"] == 1], ["right"])

    def test_comparison_pairs_the_items(self):
        other = self.folder / "bf16"
        self.assertEqual(run("--task", TASKS, "--dtype", "bf16", "--output", other, "--log-samples").returncode, 0)
        done = subprocess.run([PROGRAM, "eval", "--compare", str(self.folder / "first"), str(other), "--json"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {(one["task"], one["metric"]): one for one in json.loads(done.stdout)}
        one = found["hellaswag", "acc"]
        self.assertEqual(one["items"], 10)
        self.assertAlmostEqual(one["first"], self.first[0]["results"]["hellaswag"]["acc,none"], 12)
        self.assertAlmostEqual(one["difference"], (one["only_second"] - one["only_first"]) / 10, 12)
        self.assertTrue(0 <= one["mcnemar_p"] <= 1)
        self.assertEqual(run("--task", "boolq", "--system-instruction", "Be brief.", "--output", self.folder / "brief", "--log-samples").returncode, 0)
        done = subprocess.run([PROGRAM, "eval", "--compare", str(self.folder / "first"), str(self.folder / "brief")], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("different prompts", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
