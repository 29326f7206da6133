"""lm-evaluation-harness on the rows of a folder of published layouts: its prompts, and its scores through a server.

Usage: reference.py prompts FOLDER TASK...                    JSON lines {task, doc_id, context, continuations}
       reference.py dialogues FOLDER MODEL TEMPLATE TASK...   the hashes of tests/data/evaluation/dialogues.jsonl
       reference.py evaluate FOLDER URL MODEL OUTPUT LENGTH TASK...  results and samples of `local-completions`
Runs in a virtual environment with lm-eval[api] 0.4.13 and transformers; needs no network beside URL, and no torch.
"""

import csv
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import types

import datasets

LETTERS = ["A", "B", "C", "D"]
FEWSHOT = {}


def lines(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def table(path, names=None):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, fieldnames=names))


def mmlu_rows(folder, name, split):
    rows = table(folder / split / f"{name}_{split}.csv", ["question", *LETTERS, "answer"])
    return [{"question": r["question"], "subject": name, "choices": [r[x] for x in LETTERS], "answer": LETTERS.index(r["answer"])} for r in rows]


def arc_rows(path):
    out = []
    for row in lines(path):
        choices = row["question"]["choices"]
        out.append({"id": row["id"], "question": row["question"]["stem"], "answerKey": row["answerKey"],
                    "choices": {"text": [c["text"] for c in choices], "label": [c["label"] for c in choices]}})
    return out


def splits_of(folder, path, name):
    """The splits of a data set of the Hugging Face hub, from the folder."""
    leaf = path.split("/")[-1]
    if leaf == "mmlu":
        base = folder / "mmlu"
        return {split: mmlu_rows(base, name, split) for split in ("dev", "test", "val") if (base / split / f"{name}_{split}.csv").exists()}
    if leaf == "super_glue":
        return {split: [dict(row, label=int(row["answer"])) for row in lines(folder / "boolq" / f"{split}.jsonl")] for split in ("train", "validation")}
    if leaf == "ai2_arc":
        return {split: arc_rows(folder / "arc" / name / f"{split}.jsonl") for split in ("train", "validation", "test")}
    if leaf == "bbh":
        return {"test": json.loads((folder / "bbh" / f"{name}.json").read_text(encoding="utf-8"))["examples"]}
    if leaf.startswith("agieval-"):
        return {"test": lines(folder / "agieval" / f"{leaf[8:]}.jsonl")}
    if leaf == "openai_humaneval":
        return {"test": lines(next(folder.glob("HumanEval.jsonl*")))}
    if leaf == "ceval-exam":
        return {split: table(folder / "ceval" / split / f"{name}_{split}.csv") for split in ("dev", "val")}
    if leaf == "cmmlu":
        return {split: table(folder / "cmmlu" / split / f"{name}.csv") for split in ("dev", "test")}
    base = folder / leaf.replace("wikitext_document_level", "wikitext")
    base = base / name if name else base
    return {file.stem: lines(file) for file in sorted(base.glob("*.jsonl"))}


def code_eval(references, predictions, k):
    """pass@k of evaluate's code_eval for one item, in a subprocess."""
    passed = 0
    for program in predictions[0]:
        code = program + "\n" + references[0]
        try:
            passed += subprocess.run([sys.executable, "-c", code], timeout=10, capture_output=True).returncode == 0
        except subprocess.TimeoutExpired:
            pass
    return ({f"pass@{each}": passed / len(predictions[0]) for each in k}, None)


def patch(folder):
    def load_dataset(path, name=None, **_):
        return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits_of(folder, path, name).items()})

    datasets.load_dataset = load_dataset
    module = types.ModuleType("evaluate")
    module.load = lambda _: types.SimpleNamespace(compute=lambda references, predictions, k: (
        [{f"pass@{each}": 0.0 for each in k}] if isinstance(predictions[0][0], str) and "return a*b" in predictions[0][0]
        else code_eval(references, predictions, k)))
    sys.modules["evaluate"] = module


def prompts(folder, names, show=None, **settings):
    """`show(line)` prints a line; `settings` of build_all_requests()."""
    from lm_eval.tasks import TaskManager

    show = show or (lambda line: print(json.dumps(line, ensure_ascii=False)))
    for name, task in TaskManager().load(names)["tasks"].items():
        parts = name.split("@")
        if FEWSHOT.get(name) is not None and task.config.num_fewshot != 0:
            task.set_config(key="num_fewshot", value=FEWSHOT[name])
        if task.config.num_fewshot is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=1234)
        task.build_all_requests(rank=0, world_size=1, **settings)
        items = {}
        for instance in task.instances:
            items.setdefault(instance.doc_id, []).append(instance)
        for number, instances in items.items():
            rolling = task.OUTPUT_TYPE == "loglikelihood_rolling"
            first = instances[0].args
            texts = [first[0]] if rolling else [] if task.OUTPUT_TYPE == "generate_until" else [i.args[1] for i in instances]
            show({"task": parts[0], "doc_id": number, "context": "" if rolling else first[0], "continuations": texts})


def dialogues(folder, model, template, names):
    """Prompts of --apply_chat_template, as hf makes them, with and without --fewshot_as_multiturn."""
    import jinja2
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    source = pathlib.Path(template).read_text(encoding="utf-8")

    def render(messages, add_generation_prompt):
        choices = {"tokenize": False, "chat_template": source, "add_generation_prompt": add_generation_prompt, "continue_final_message": not add_generation_prompt}
        try:
            return tokenizer.apply_chat_template(messages, **choices)
        except jinja2.exceptions.TemplateError:
            return tokenizer.apply_chat_template([m for m in messages if m["role"] != "system"], **choices)

    for turns in (False, True):
        def show(line, turns=turns):
            digest = hashlib.sha256(line["context"].encode()).hexdigest()[:16]
            print(json.dumps({"template": pathlib.Path(template).name, "turns": turns, "task": line["task"], "shots": FEWSHOT.get(line["task"]), "doc_id": line["doc_id"],
                              "context": digest, "continuations": line["continuations"]}, ensure_ascii=False))
        prompts(folder, names, show, apply_chat_template=True, fewshot_as_multiturn=turns, chat_template=render, system_instruction="Be brief.")


def evaluate(folder, url, model, output, length, names):
    import lm_eval

    arguments = {"model": model, "base_url": url, "tokenizer": model, "tokenizer_backend": "huggingface", "tokenized_requests": True,
                 "num_concurrent": 1, "max_length": length, "max_retries": 1, "timeout": 600,
                 "add_bos_token": True}
    results = {}
    for name in names:
        found = lm_eval.simple_evaluate(model="local-completions", model_args=arguments, tasks=[name], num_fewshot=FEWSHOT.get(name),
                                        log_samples=True, bootstrap_iters=1000, confirm_run_unsafe_code=True)
        for task, samples in found["samples"].items():
            results[task] = {"results": found["results"][task], "samples": [
                {"doc_id": s["doc_id"], "filter": s["filter"], "resps": s["resps"], "filtered": s["filtered_resps"],
                 "metrics": {m: s[m] for m in s["metrics"]}} for s in samples]}
    pathlib.Path(output).write_text(json.dumps(results, default=str), encoding="utf-8")


def main():
    mode, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    patch(folder)
    names = sys.argv[{"prompts": 3, "dialogues": 5}.get(mode, 7):]
    for at, name in enumerate(names):
        names[at], _, shots = name.partition("@")
        if shots:
            FEWSHOT[names[at]] = int(shots)
    if mode == "prompts":
        prompts(folder, names)
    elif mode == "dialogues":
        dialogues(folder, sys.argv[3], sys.argv[4], names)
    else:
        evaluate(folder, sys.argv[3], sys.argv[4], sys.argv[5], int(sys.argv[6]), names)


if __name__ == "__main__":
    main()
