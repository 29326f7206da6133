"""Rows and a checkout for tests of the suite mindspeed: the layouts of the published data and of MindSpeed-LLM, with other texts."""

import csv
import json

COLORS = ["red", "green", "None", "0.50", "2", "grey"]
EVALUATION = "mindspeed_llm/tasks/evaluation"
LETTERS = """def postprocess(text, options):
    patterns = [
        f'is:?\\s+\\(?([{options}])\\)?',
        f'say ([{options}])'
        f' and ([{options}])',
    ]
    return patterns
"""


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_table(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(rows)


def question(rng, n):
    return [f"Which colour has card {n}?", *rng.sample(COLORS, 4), rng.choice("ABCD")]


def make_rows(folder, rng):
    for subject in ("virology", "unknown"):
        write_table(folder / f"mmlu/test/{subject}_test.csv", [question(rng, n) for n in range(7)])
        write_table(folder / f"mmlu/dev/{subject}_dev.csv", [question(rng, n) for n in range(6)])
    for split in ("val", "dev"):
        rows = [["id", "question", "A", "B", "C", "D", "answer", *(["explanation"] if split == "dev" else [])]]
        rows += [[n, *question(rng, n), *(["why"] if split == "dev" else [])] for n in range(5)]
        write_table(folder / f"ceval/{split}/logic_{split}.csv", rows)
    for split in ("test", "dev"):
        write_table(folder / f"cmmlu/{split}/arts.csv", [["", "Question", "A", "B", "C", "D", "Answer"]] + [[n, *question(rng, n)] for n in range(5)])
    write_lines(folder / "boolq/dev.jsonl", [{"title": "Ada", "passage": f"Ada has {n} cats.", "question": "is ada old", "answer": n % 2 == 0} for n in range(6)])
    for task, targets in (("boolean_expressions", ["True", "False"]), ("date_understanding", ["(A)", "(B)"])):
        path = folder / f"bbh/{task}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"canary": "x", "examples": [{"input": "not " * (5 - n) + "True is", "target": rng.choice(targets)} for n in range(5)]}))
    write_lines(folder / "agieval/sat-math.jsonl", [{"passage": None, "question": f"{n} + 1?", "options": ["(A)1", "(B)2", "(C)3"], "label": "B", "answer": None} for n in range(4)])
    write_lines(folder / "agieval/math.jsonl", [{"passage": "", "question": f"{n} + 1?", "options": None, "label": None, "answer": f"${n + 1}$"} for n in range(3)])
    write_lines(folder / "agieval/jec-qa-kd.jsonl", [{"passage": "p", "question": "?", "options": ["(A)1", "(B)2"], "label": ["A", "B"], "answer": None}] * 2)
    write_lines(folder / "gsm8k/test.jsonl", [{"question": f"What is {n} + 1?", "answer": f"So it is.\n#### {n + 1:,}"} for n in (1, 2, 1999)])
    write_lines(folder / "human_eval/HumanEval.jsonl", [
        {"task_id": f"T/{n}", "prompt": "def f(a):\n", "test": test, "entry_point": "f"} for n, test in enumerate(["def check(g):\n    pass", "def check(g):\n    assert g(1)"])])
    write_lines(folder / "hellaswag/validation.jsonl", [{"query": f"Painting: card {n}", "choices": ["a", "b", "c", "d"], "gold": n % 4} for n in range(5)])


def make_checkout(folder):
    """The files of MindSpeed-LLM that the suite reads, with other texts."""
    texts = {"mmlu_5shot_template.json": {"virology": "Questions about  virology.\n\nX?\nA. 1\nAnswer: A"}, "ceval_5shot_template.json": {"logic": "问：X\n答：A"},
             "cmmlu_5shot_template.json": {"arts": "X\n答案：A\n"}, "gsm8k_3shot_template.json": {"few_shot": "Q: 1+1?\n\nA:The answer is 2."},
             "bbh_template.json": {"boolean_expressions": "Say.\n\nQ: x\nA: True\n\n", "date_understanding": "Say.\n\n"},
             "bbh_cot_template.json": {"boolean_expressions": "Think.\n\n", "date_understanding": "Think.\n\n"},
             "AGI_fewshot.json": {name: ["Problem 1.", "\nChoose:", "\nAnswer:"] for name in ("sat-math", "math", "jec-qa-kd")}}
    for name, text in texts.items():
        path = folder / EVALUATION / "eval_impl/fewshot_template" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")
    sources = {"eval_utils/mmlu_utils.py": LETTERS, "eval_utils/gsm8k_utils.py": "four_shots_prompt: str = (\n    'Question: 1?\\n'\n    'Question: '\n)\n",
               "eval_utils/agi_utils.py": LETTERS + "template_mapping = {\n    'sat-math':\n    'A question.',\n    'math': 'A question.', 'jec-qa-kd': '问。',\n}\n",
               "eval_impl/hellaswag_eval.py": "self.instruction_template = ('{ctx}\\nWhich?\\n'\n    'A. {A}\\nB. {B}\\nC. {C}\\nD. {D}\\nAnswer:')\n"}
    for name, text in sources.items():
        path = folder / EVALUATION / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "configs/evaluate").mkdir(parents=True)
    (folder / "configs/evaluate/cmmlu_answer_finding_patterns.json").write_text(json.dumps({"patterns": ["是：?([ABCD])", "选([ABCD])"]}))
