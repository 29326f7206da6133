"""The lines of troupe generate, several of which are computed together: generate_lines_test.py PROGRAM SOURCE. Every output has the
bytes of a program that gets each line after the answer to the one before."""
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from served import DIGITS, PROGRAM, STORIES, under_mpirun

PROMPTS = ["Once upon a time", "Lily", "The dog", "One day, Tim and his friend Lily were", "A", "She was happy because"]


def lines_of(count, **more):
    """Greedy and sampled lines of several lengths and settings."""
    for n in range(count):
        line = {"prompt": PROMPTS[n % len(PROMPTS)] + " and" * (n % 7), "max_new_tokens": 3 + 5 * (n % 6), **more}
        if n % 2 == 1:
            line.update(temperature=1.1, seed=n, top_p=0.9)
        if n % 5 == 2:
            line["stop"] = ["the", "."]
        if n % 5 == 4:
            line["top_logprobs"] = 2
        yield json.dumps(line)


def program(*words, ranks=1):
    command = [PROGRAM, "generate", "--quiet", "--threads", "1", *words]
    return [*under_mpirun(ranks), *command, "--tp", str(ranks)] if ranks > 1 else command


def environment(ranks):
    return dict(os.environ, ASAN_OPTIONS="detect_leaks=0") if ranks > 1 else None


def together(lines, *words, ranks=1):
    said = subprocess.run(program(*words, ranks=ranks), input="".join(line + "\n" for line in lines), capture_output=True, text=True,
                          timeout=300, env=environment(ranks))
    return said.returncode, said.stdout


def one_at_a_time(lines, *words, ranks=1):
    """Each line is written when the one before is answered, which also shows that no line waits for the next one."""
    with subprocess.Popen(program(*words, ranks=ranks), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env=environment(ranks)) as process:
        answers = []
        for line in lines:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        answers.append(process.stdout.read())
        return process.wait(), "".join(answers)


class Lines(unittest.TestCase):
    def check(self, lines, *words, ranks=1, errors=0):
        lines = list(lines)
        code, found = together(lines, *words, ranks=ranks)
        self.assertEqual((code, found), one_at_a_time(lines, *words, ranks=ranks))
        self.assertEqual(code, 0)
        answers = [json.loads(line) for line in found.splitlines()]
        self.assertEqual(len(answers), len(lines))
        self.assertEqual(sum("error" in answer for answer in answers), errors, [answer for answer in answers if "error" in answer])
        return answers

    def test_many_have_the_bytes_of_each_alone(self):
        self.check(lines_of(200), "--model", STORIES)

    def test_with_drafts(self):
        for options in (["--lookup", "4"], ["--draft", STORIES, "--draft-tokens", "3"]):
            self.check(lines_of(40), "--model", STORIES, *options)

    def test_with_samples_of_each_prompt(self):
        answers = self.check(lines_of(40, temperature=1.3), "--model", STORIES, "--n", "4")
        self.assertEqual({len(answer["samples"]) for answer in answers}, {4})

    def test_with_more_samples_than_are_computed_together(self):
        self.check(lines_of(3, temperature=1.3), "--model", STORIES, "--n", "150")

    def test_with_beams_among_them(self):
        lines = [json.dumps({**json.loads(line), **({"num_beams": 3, "top_logprobs": 0} if n % 4 == 0 else {})})
                 for n, line in enumerate(lines_of(24))]
        self.check(lines, "--model", STORIES)

    def test_with_int8_weights_and_bf16(self):
        self.check(lines_of(24), "--model", STORIES, "--weights", "int8", "--dtype", "bf16")

    def test_with_an_adapter(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, output = os.path.join(folder, "rows.jsonl"), os.path.join(folder, "adapter")
            with open(rows, "w", encoding="utf-8") as file:
                file.write('{"prompt": "1,2:", "completion": "9"}\n')
            sets = {"lora.rank": 4, "train.batch_size": 1, "train.steps": 4, "train.threads": 1, "train.learning_rate": "3e-2"}
            subprocess.run([PROGRAM, "train", "--algorithm", "sft", "--model", DIGITS, "--data", rows, "--output", output, "--quiet",
                            *(word for key, value in sets.items() for word in ("--set", f"{key}={value}"))], check=True, timeout=120)
            lines = [json.dumps({"prompt": f"{n % 10},{n % 7}:", "max_new_tokens": 12, "temperature": n % 3, "seed": n}) for n in range(40)]
            adapted = self.check(lines, "--model", DIGITS, "--adapter", os.path.join(output, "latest"))
            self.assertNotEqual(adapted, self.check(lines, "--model", DIGITS))

    @unittest.skipUnless(shutil.which("mpirun") and os.path.exists(os.path.join(os.path.dirname(PROGRAM), "libtroupe_mpi.so")),
                         "mpirun or the program's module for it is not there")
    def test_with_two_ranks(self):
        lines = [*lines_of(30), "nonsense", json.dumps({"prompt": "The dog", "num_beams": 3}), *lines_of(10)]
        self.check(lines, "--model", STORIES, ranks=2, errors=1)

    def test_invalid_lines_in_the_middle(self):
        wrong = ["nonsense", "[1]", "", '{"ids": [9999]}', '{"prompt": "a", "temprature": 1}', '{"prompt": "a", "temperature": -1}',
                 json.dumps({"prompt": "once upon " * 600}), '{"prompt": "a", "top_logprobs": 100000}', '{"prompt": ""}',
                 '{"prompt": "a", "num_beams": 2, "top_logprobs": 1}', "x" * (5 << 20)]
        lines = [line for pair in itertools.zip_longest(wrong, lines_of(len(wrong) + 4)) for line in pair if line is not None]
        self.check(lines, "--model", STORIES, errors=len(wrong) - 1)  # an empty prompt has a first token

    def test_a_draft_that_does_not_fit_fails_every_line_but_beams(self):
        lines = [*lines_of(4), '{"prompt": "The dog", "num_beams": 3, "max_new_tokens": 4}', *lines_of(4)]
        for answer in self.check(lines, "--model", STORIES, "--draft", DIGITS, errors=8):
            if "error" in answer:
                self.assertIn("the draft model's vocabulary has 16 tokens", answer["error"])

    def test_an_input_that_does_not_end_is_answered(self):
        with subprocess.Popen(program("--model", STORIES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as process:
            for line in lines_of(100):  # fewer than are computed together, and none that ends the input
                process.stdin.write(line + "\n")
            process.stdin.write('{"prompt": "The')
            process.stdin.flush()
            found = [process.stdout.readline() for _ in range(100)]
            process.stdin.write(' dog"}\n')
            process.stdin.close()
            last = process.stdout.read()
        expected = one_at_a_time([*lines_of(100), '{"prompt": "The dog"}'], "--model", STORIES)
        self.assertEqual((process.returncode, "".join(found) + last), expected)

    def test_the_first_answer_of_a_file_comes_before_the_last_line_is_read(self):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            for line in lines_of(2000):
                file.write(line + "\n")
            file.flush()
            file.seek(0)
            with subprocess.Popen(program("--model", STORIES), stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) as process:
                process.stdout.readline()
                with open(f"/proc/{process.pid}/fdinfo/0", encoding="ascii") as info:
                    position = int(info.readline().split()[1])
                self.assertLess(position, os.fstat(file.fileno()).st_size)
                process.kill()
                process.stdout.read()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
