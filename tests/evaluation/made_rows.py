"""Rows for tests of evaluation tasks, in the layouts that the data sets' authors publish. All texts are made here.

Usage: made_rows.py FOLDER
"""

import csv
import json
import pathlib
import random
import sys

COLORS = ["red", "green", "blue", "grey", "white", "black"]
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def mmlu(folder, rng):
    for split, count in (("dev", 6), ("test", 14)):
        for subject in ("virology", "high_school_physics"):
            path = folder / "mmlu" / split / f"{subject}_{split}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out)
                for n in range(count):
                    choices = rng.sample(COLORS, 4)
                    question = f"  {rng.choice(NAMES)} paints {subject.replace('_', ' ')} card {n}; which, \"in all\", is it?\nPick one. "
                    writer.writerow([question, *choices, rng.choice("ABCD")])


def boolq(folder, rng):
    for split, count in (("train", 9), ("validation", 12)):
        write_lines(folder / "boolq" / f"{split}.jsonl", [
            {"question": f"is {(name := rng.choice(NAMES)).lower()} older than {rng.randint(2, 90)}", "title": name,
             "passage": f"{name} was born in {rng.randint(1900, 2020)}. {name}\u2019s house is {rng.choice(COLORS)}.", "answer": rng.random() < 0.5}
            for _ in range(count)])


def hellaswag(folder, rng):
    for split in ("train", "validation"):
        write_lines(folder / "hellaswag" / f"{split}.jsonl", [
            {"ind": n, "activity_label": f"Painting {rng.choice(COLORS)}", "ctx_a": f"[header] How to paint [title] {rng.choice(NAMES)} takes a brush.",
             "ctx_b": rng.choice(["he  THEN", "", "she [step] slowly"]),
             "endings": [f"paints it {color}.  [substeps] done" for color in rng.sample(COLORS, 4)], "label": str(rng.randint(0, 3))}
            for n in range(10)])


def gsm8k(folder, rng):
    for split, count in (("train", 40), ("test", 10)):
        rows = []
        for _ in range(count):
            a, b = rng.randint(2, 1500), rng.randint(2, 40)
            rows.append({"question": f"{rng.choice(NAMES)} has {a} stamps and buys {b} more. How many stamps are there?",
                         "answer": f"There are {a} + {b} = <<{a}+{b}={a + b}>>{a + b} stamps.\n#### {a + b:,}"})
        write_lines(folder / "gsm8k" / "main" / f"{split}.jsonl", rows)


def arc(folder, rng):
    for split in ("train", "validation", "test"):
        write_lines(folder / "arc" / "ARC-Easy" / f"{split}.jsonl", [
            {"id": f"r{n}", "question": {"stem": f"Which colour has card {n}?", "choices": [
                {"text": color, "label": label} for color, label in zip(rng.sample(COLORS, 4), rng.choice(["ABCD", "1234"]))]},
             "answerKey": ""} for n in range(6)])
        path = folder / "arc" / "ARC-Easy" / f"{split}.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row["answerKey"] = rng.choice(row["question"]["choices"])["label"]
        write_lines(path, rows)


def bbh(folder, rng):
    rows = []
    for _ in range(8):
        a, b = rng.choice(["True", "False"]), rng.choice(["True", "False"])
        rows.append({"input": f"not {a} and {b} is", "target": str(not (a == "True") and b == "True")})
    path = folder / "bbh" / "boolean_expressions.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"canary": "made for a test", "examples": rows}), encoding="utf-8")


def agieval(folder, rng):
    rows = []
    for n in range(8):
        choices = [f"({letter}){rng.randint(1, 99)}" for letter in "ABCDE"]
        rows.append({"query": f"Q: Which number has card {n}? Answer Choices: {' '.join(choices)}\nA: Among A through E, the answer is",
                     "choices": choices, "gold": sorted(rng.sample(range(5), rng.choice([1, 1, 2])))})
    write_lines(folder / "agieval" / "aqua-rat.jsonl", rows)
    write_lines(folder / "agieval" / "math.jsonl", [
        {"query": f"Q: What is {n} over 2?\nA: The answer is", "answer": f"\\frac{{{n}}}{{2}}"} for n in range(1, 7)])


def chinese(folder, rng):
    for name, column, question in (("ceval", "answer", "question"), ("cmmlu", "Answer", "Question")):
        for split in (("dev", "val") if name == "ceval" else ("dev", "test")):
            subject = "law" if name == "ceval" else "anatomy"
            end = f"_{split}" if name == "ceval" else ""
            path = folder / name / split / f"{subject}{end}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out)
                writer.writerow(["id" if name == "ceval" else "", question, "A", "B", "C", "D", column])
                for n in range(6):
                    writer.writerow([n, f"卡片{n}是什么颜色？", "红", "绿", "蓝", "白", rng.choice("ABCD")])


def humaneval(folder, rng):
    write_lines(folder / "HumanEval.jsonl", [
        {"task_id": f"made/{n}", "prompt": f"def add_{n}(x):\n    \"\"\"Adds {n} to x.\"\"\"\n", "entry_point": f"add_{n}",
         "canonical_solution": f"    return x + {n}\n", "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n"} for n in range(4)])


def wikitext(folder, rng):
    for split in ("train", "validation", "test"):
        write_lines(folder / "wikitext" / "wikitext-2-raw-v1" / f"{split}.jsonl", [
            {"page": f"\n = {rng.choice(NAMES)} = \n\n " + " ".join(
                rng.choice(["the", "cat", "'s", "( small )", "@-@", ",", ".", "\" big \"", "10 @,@ 000", "[ x ]", "N", ";"])
                for _ in range(length)) + " \n"} for length in (5, 60, 700, 200)])


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in (mmlu, boolq, hellaswag, gsm8k, arc, bbh, agieval, chinese, humaneval, wikitext):
        make(folder, random.Random(make.__name__))


if __name__ == "__main__":
    main()
