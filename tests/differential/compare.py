#!/usr/bin/env python3
"""Compares troupe with the libraries of the ecosystem on random inputs.

compare.py PROGRAM PART [COUNT] [SEED]

PART is texts (COUNT texts for each bundled tokenizer), components (COUNT tokenizers of random components, a twentieth of it with all), programs (COUNT programs of the
template language), renders (COUNT conversations through the bundled chat templates) or all. Differences that known.txt explains are counted;
any other is printed and ends the comparison with exit code 1. Exit code 77: a library is missing. The versions are those of requirements.txt.
"""
import json
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
sys.path.insert(0, HERE)
COUNTS = {"texts": 10000, "components": 200, "programs": 10000, "renders": 2000}


class Known:
    """The differences that have a reason: lines of known.txt."""

    def __init__(self):
        self.rules, self.used = [], {}
        with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    part, pattern, reason = line.rstrip("\n").split("\t")
                    self.rules.append((part, re.compile(pattern, re.S), reason))

    def without(self, part, text):
        """The text without what a line PART/text describes."""
        for known_part, pattern, reason in self.rules:
            if known_part == part + "/text" and isinstance(text, str):
                text, times = pattern.subn("", text)
                if times:
                    self.used[reason] = self.used.get(reason, 0) + 1
        return text

    def explains(self, part, case):
        for known_part, pattern, reason in self.rules:
            if known_part == part and pattern.search(case):
                self.used[reason] = self.used.get(reason, 0) + 1
                return True
        return False


class Report:
    def __init__(self, part):
        self.part, self.known, self.compared, self.unknown = part, Known(), 0, []

    def compare(self, where, case, expected, found):
        self.compared += 1
        if expected == found or self.known.without(self.part, expected) == self.known.without(self.part, found):
            return
        if not self.known.explains(self.part, f"{where}\n{case}"):
            self.unknown.append((where, case, expected, found))

    def finish(self):
        for where, case, expected, found in self.unknown[:20]:
            print(f"{self.part}: {where}: {case!r}\n  expected {expected!r}\n  found    {found!r}")
        for reason, times in self.known.used.items():
            print(f"{self.part}: {times} known differences: {reason}")
        print(f"{self.part}: {self.compared} compared, {len(self.unknown)} unexplained differences")
        return not self.unknown and self.compared > 0


def answers(program, arguments, lines):
    """What the program prints for these lines, one object for each."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([program, *arguments], input=text.encode(), capture_output=True, timeout=600)
    out = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    if len(out) != len(lines):
        return [{"error": done.stderr.decode()[:500]}] * len(lines)
    return out


def random_texts(rng, count, special=()):
    """Texts of real sentences, code, many scripts, white space, rare characters and special tokens."""
    sentences = []
    for name in ("pretrain/tinystories_train_head.txt",):
        with open(os.path.join(DATA, "datasets", name), encoding="utf-8") as file:
            sentences += [line.strip() for line in file if line.strip()]
    pieces = ["def f(x):\n    return x\n", "   ", "\t\t", "\r\n", "\n\n\n", "don't", "it's", "1234567890", "3.14159", "\u00e9t\u00e9", "e\u0301",
              "\u4e2d\u6587\u3002", "\u65e5\u672c\u8a9e\u3001", "\u3042\u30fc\u3044", "\uc548\ub155", "\u0645\u0631\u062d\u0628\u0627\u060c",
              "\u0439\u043e\u0434", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001F600\U0001F3FD", "\U0001F468\u200D\U0001F469", "\ufb01", "\u00bd",
              "\u212b", "\u0130\u0131", "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\x00", "\x1f", "\u0953\u034a", "\u07fd\u0334", "_a_b", "http://x.y/z?q=1",
              "<|x|>", "</s>", "<s>", "\u2581", "\u0120", "<0x0A>"] + list(special)
    out = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(1, 8)):
            kind = rng.randrange(6)
            if kind == 0:
                sentence = rng.choice(sentences)
                begin = rng.randrange(len(sentence))
                parts.append(sentence[begin:begin + rng.randrange(1, 80)])
            elif kind == 1:
                parts.append("".join(chr(rng.randrange(0x20, 0x7f)) for _ in range(rng.randrange(12))))
            elif kind == 2:
                begin = rng.choice([0xa0, 0x250, 0x370, 0x590, 0x900, 0xe00, 0x1100, 0x1e00, 0x2000, 0x3000, 0x4e00, 0xac00, 0xf900, 0x1d100, 0x1f300])
                parts.append("".join(chr(begin + rng.randrange(256)) for _ in range(rng.randrange(6))))
            else:
                parts.append(rng.choice(pieces))
            if rng.random() < 0.3:
                parts.append(" ")
        out.append("".join(parts))
    return out


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    program, part = os.path.abspath(sys.argv[1]), sys.argv[2]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import templates
        import tokenizer_parts
    except ImportError as missing:
        print(f"left out: {missing}", file=sys.stderr)
        return 77
    parts = {"texts": tokenizer_parts.texts, "components": tokenizer_parts.components, "programs": templates.programs, "renders": templates.renders}
    good = True
    for name in parts if part == "all" else [part]:
        report = Report(name)
        count = int(sys.argv[3]) if len(sys.argv) > 3 else COUNTS[name]
        if name == "components" and part == "all" and len(sys.argv) > 3:
            count = max(10, count // 20)
        parts[name](program, count, random.Random(seed), report)
        good = report.finish() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.modules["compare"] = sys.modules["__main__"]
    sys.exit(main())
