"""Recounts an evaluation of the suite mindspeed from its logged items, by rules written down here a second time.

Usage: mindspeed_recount.py RESULTS CHECKOUT

RESULTS: a folder of `troupe eval --suite mindspeed --log-samples`. CHECKOUT: MindSpeed-LLM, for its patterns, which
are evaluated as Python has them. Compares the verdict of each item and the accuracy of each subject and task; the
exit code is 1 at a difference. Programs are run in a process of their own, without a sandbox: give only texts that
you trust.
"""

import ast
import json
import pathlib
import re
import subprocess
import sys

UTILS = "mindspeed_llm/tasks/evaluation/eval_utils"
TRUTH = {"navigate", "sports_understanding", "boolean_expressions", "formal_fallacies", "causal_judgement", "web_of_lies"}
TEXT = {"multistep_arithmetic_two", "dyck_languages", "word_sorting", "object_counting"}


def patterns_of(checkout, file, options):
    """The list `patterns` of a function, its f-strings with the options."""
    tree = ast.parse((pathlib.Path(checkout) / UTILS / file).read_text(encoding="utf-8"))
    (lists,) = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "patterns"]
    return eval(compile(ast.Expression(lists), file, "eval"), {"options": options})  # pylint: disable=eval-used


def search_letter(patterns, options, text, group):
    for pattern in [*patterns, f"([{options}]):", f"([{options}])"]:
        match = re.search(pattern, text.strip(), re.DOTALL)
        if match:
            found = (match.group(1) or match.group(0)) if group else match.group(0)[-1]
            for option in options:
                if option in found:
                    return option
    return ""


def capital(text):
    return next((c for c in text.strip() if c.isupper()), "")


def first_line(text):
    return (text.splitlines() or [""])[0]


def bbh(text, subject, cot):
    if cot:
        parts = text.split("answer is ")
        text = parts[1].strip() if len(parts) > 1 else text
        if subject not in TRUTH | TEXT:
            match = re.search(r"\(([A-Z])\)*", text) or re.search(r"([A-Z])", text)
            return match.group(1) if match else first_line(text)
        text = text.split("\n")[0].strip()
        text = text[:-1].strip() if text.endswith(".") else text
        match = re.search(r"\*\*(.*?)\*\*", text)
        if match:
            return match.group(1).strip().split(",")[0] if subject in TRUTH else match.group(1)
        return text
    text = re.split(r"\.|\n|\)", re.sub(r".*\(", "", first_line(text.lstrip())))[0].strip("()")
    match = re.search(r"\b(yes|no|true|false|invalid|valid)\b", text, re.IGNORECASE) if subject in TRUTH else None
    return match.group() if match else text


def gsm8k(text, cot, fixed):
    if cot:
        text = text.lstrip().split("Question:")[0]
        numbers = re.findall(r"-?\d+\.\d+|-?\d+", re.sub(r"(?<=\d),(?=\d{3})", "", text) if fixed else text)
        return numbers[-1] if numbers else "NULL"
    text = text.lstrip().split("Q:")[0].replace("$", "").replace(",", "") + "  "
    if fixed:
        found = re.findall(r"The answer is (.*?)(?: |\n)", text)
        return found[0].removesuffix(".") if found else ""
    found = re.findall(r"The answer is (.*?) ", text.replace(".", " "))
    return found[0] if found else ""


def cloze(text):
    for prefix in ("The answer is therefore", "答案是"):
        if prefix in text:
            at = 0 if text.startswith(prefix) else text.rfind(prefix)
            text = text[at + len(prefix):].strip()
    if "\\boxed" in text:
        at, depth = text.rfind("\\boxed"), 0
        for end in range(at, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if text[end] == "}" and depth == 0:
                found = text[at + 7:end] if text[at:at + 7] == "\\boxed{" else None
                return found.split("=")[-1].lstrip(" ") if found and "=" in found else found
        return None
    found = re.findall(r"\$(.*)\$", text)
    last = found[-1].split("=")[-1].lstrip(" ") if found and "=" in found[-1] else (found[-1] if found else None)
    if last:
        return last
    if "=" in text:
        return text.split("=")[-1].lstrip(" ").rstrip(".").split("\\n")[0]
    found = re.findall(r"(?:\$)?\d+(?:\.\d+)?(?![\w\d])", text)
    return found[-1] if found else None


def program_passes(doc, text, fenced, fixed):
    if fenced:
        blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
        code = doc["prompt"] + (blocks[0] if blocks else text) + "\n"
    else:
        code, defined = "from typing import List\nimport math\n", False
        for line in (doc["prompt"] + "    " + text.lstrip()).split("\n"):
            if not line.strip():
                continue
            if line.strip()[0] == line[0] and not line.startswith(("from", "import", "def")):
                if defined:
                    break
                continue
            if line.startswith("def"):
                word = re.split(r"\s+", line)[1]
                defined = defined or (word.split("(")[0] if fixed else word) == doc["entry_point"]
            code += line + "\n"
    code += doc["test"] + f"\ncheck({doc['entry_point']})"
    try:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Recount:
    def __init__(self, config, checkout):
        self.mode, self.checkout = config["mode"], checkout
        self.fixed, self.lenient = config["defects"] == "corrected", config["lenient"]
        self.patterns = {}

    def letters(self, file, options, text, group):
        if (file, options) not in self.patterns:
            if file.endswith(".json"):
                self.patterns[file, options] = json.loads((pathlib.Path(self.checkout) / "configs/evaluate" / file).read_text(encoding="utf-8"))["patterns"]
            else:
                self.patterns[file, options] = patterns_of(self.checkout, file, options)
        return search_letter(self.patterns[file, options], options, text, group)

    def verdict(self, task, subject, line):
        doc = line["doc"]
        if task == "mmlu_ppl":
            sums = [float(one[0][0]) for one in line["resps"]]
            return "ABCD"[sums.index(max(sums))].lower() == doc["answer"].lower()
        if task == "boolq" and self.mode == "direct":
            yes, no = (float(one[0][0]) for one in line["resps"])
            return (yes >= no) == doc["answer"]
        text = line["resps"][0][0]
        return getattr(self, task)(text, subject, doc)

    def mmlu(self, text, _, doc):
        if self.mode != "alternative":
            match = re.match(r".*([A|B|C|D])\..*", text.lstrip()) or re.match(r"([A|B|C|D])", text.lstrip())
            return match is not None and match.group(1) == doc["answer"]
        if self.lenient:
            match = re.search("[A-D]", first_line(text.strip()))
            if match and match.group() == doc["answer"]:
                return True
        return self.letters("mmlu_utils.py", "ABCD", text.replace("Answer the question by replying A, B, C or D.", ""), False) == doc["answer"]

    def ceval(self, text, _, doc):
        return (text.strip() if self.mode == "direct" else capital(text)) == doc["answer"].strip()

    def cmmlu(self, text, _, doc):
        return self.letters("cmmlu_answer_finding_patterns.json", "ABCD", text, False) == doc["answer"]

    def boolq(self, text, _, doc):
        found = capital(text)
        return {"T": "A", "Y": "A", "F": "B", "N": "B"}.get(found, found) == ("A" if doc["answer"] else "B")

    def bbh(self, text, subject, doc):
        found = first_line(bbh(text, subject, self.mode == "cot"))
        return bool(found) and found.lower() == doc["target"].lstrip("(").rstrip(")").lower()

    def agieval(self, text, subject, doc):
        label = doc["label"]
        several = subject in ("gaokao-physics", "jec-qa-kd", "jec-qa-ca")
        gold = ("" if self.fixed and several else ",").join(label) if isinstance(label, list) else label
        gold = gold or (doc.get("answer") or "").replace("$", "")
        text = text.lstrip()
        if self.mode == "direct":
            found = re.sub(r"[$()]", "", first_line(text))
        elif several:
            found = (re.findall("[A-D]+", text) or [""])[0]
        elif subject in ("gaokao-mathcloze", "math"):
            found = cloze(text)
        else:
            options = "".join(chr(65 + n) for n in range(len(doc["options"])))
            found = self.letters("agi_utils.py", options, text, True)
        return bool(found) and found == gold

    def gsm8k(self, text, _, doc):
        gold = doc["answer"].split("#### ")[-1]
        return gsm8k(text, self.mode == "cot", self.fixed) == (gold.replace(",", "") if self.fixed else gold)

    def human_eval(self, text, _, doc):
        return program_passes(doc, text, self.mode == "alternative", self.fixed)

    def hellaswag(self, text, _, doc):
        return self.letters("mmlu_utils.py", "ABCD", text.lstrip().replace("Answer the question by replying A, B, C or D.", ""), False) == "ABCD"[doc["gold"]]


def main():
    folder, checkout = pathlib.Path(sys.argv[1]), sys.argv[2]
    results = json.loads(max(folder.glob("results_*.json")).read_text(encoding="utf-8"))
    recount = Recount(results["config"], checkout)
    different = items = 0
    for task, members in results["group_subtasks"].items():
        right = total = 0
        for member in members:
            lines = max(folder.glob(f"samples_{member}_2*.jsonl")).read_text(encoding="utf-8").splitlines()
            lines = [json.loads(line) for line in lines]
            verdicts = [recount.verdict(task, member.removeprefix(task + "_"), line) for line in lines]
            different += sum(verdict != (line["acc"] == 1) for verdict, line in zip(verdicts, lines))
            count = len(verdicts)
            if task == "bbh" and not recount.fixed:
                count = results["n-samples"][member]["original"]
            right, total, items = right + sum(verdicts), total + count, items + len(verdicts)
            different += abs(results["results"][member]["acc,none"] - sum(verdicts) / count) > 1e-12
        different += abs(results["groups"][task]["acc,none"] - right / total) > 1e-12
        print(f"{task}: {right} of {total} are right")
    print(f"{items} items, {different} differences")
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
