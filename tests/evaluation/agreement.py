"""Compares `troupe eval --task` with lm-evaluation-harness through `troupe serve`, item by item.

Usage: agreement.py PROGRAM PYTHON MODEL FOLDER LENGTH TASK[@SHOTS]...
PYTHON has lm-eval[api] 0.4.13 and transformers (reference.py). The model's max_position_embeddings is LENGTH in a copy for both.
Log-probabilities may differ by 1e-5 each; verdicts only where the best two sums of an item are closer than 2e-5, which are listed.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent


def copy_model(model, folder, length):
    target = folder / "model"
    shutil.copytree(model, target)
    config = json.loads((target / "config.json").read_text())
    config["max_position_embeddings"] = length
    (target / "config.json").write_text(json.dumps(config))
    # transformers 5 builds some classes of tokenizers from parts of the file; this one reads the file.
    tokenizer = json.loads((target / "tokenizer_config.json").read_text())
    tokenizer["tokenizer_class"] = "PreTrainedTokenizerFast"
    (target / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return target


def start_server(program, model, folder):
    log = (folder / "serve.log").open("w")
    server = subprocess.Popen([program, "serve", "--model", str(model), "--port", "0"], stdout=subprocess.PIPE, stderr=log, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        text = server.stdout.readline() + (folder / "serve.log").read_text()
        for word in text.split():
            if word.startswith("http://"):
                return server, word.rstrip("/.,")
        if server.poll() is not None:
            break
    raise SystemExit("troupe serve did not start: " + (folder / "serve.log").read_text())


def troupe_samples(program, model, folder, output, tasks):
    out = {}
    for task in tasks:
        name, _, shots = task.partition("@")
        target = output / name
        command = [program, "eval", "--model", str(model), "--task", name, "--task-data", str(folder), "--output", str(target), "--log-samples", "--allow-code"]
        subprocess.run(command + (["--num-fewshot", shots] if shots else []), check=True, stdout=subprocess.DEVNULL)
        results = json.loads(next(target.glob("results_*.json")).read_text())
        for file in target.glob("samples_*.jsonl"):
            found = file.name[len("samples_"):].rpartition("_")[0]
            out[found] = {"results": results["results"][found], "samples": [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]}
    return out


def sums(responses):
    """The log-probabilities of an item's requests, or None for generated answers."""
    try:
        return [float(one[0][0]) if isinstance(one[0], (list, tuple)) else float(one[0]) for one in responses]
    except (TypeError, ValueError):
        return None


def compare_item(task, ours, theirs, report):
    where = f"{task} item {theirs['doc_id']} {theirs['filter']}"
    mine, other = sums(ours["resps"]), sums(theirs["resps"])
    near = False
    if mine is None or task_generates(ours):
        report["texts"] += 1
        # A server's text follows the prompt; the tokens alone, as the back end hf decodes them, lose a leading space.
        if any(str(a) not in (str(b), str(b).removeprefix(" ")) for a, b in zip(ours["resps"][0], theirs["resps"][0], strict=True)):
            report["wrong"].append(f"{where}: text {ours['resps']!r:.200} and {theirs['resps']!r:.200}")
    else:
        differences = [abs(a - b) for a, b in zip(mine, other, strict=True)]
        report["sums"] += len(differences)
        report["largest"] = max([report["largest"], *differences])
        if max(differences) > 1e-5 * max(1, max(abs(x) for x in other)):
            report["wrong"].append(f"{where}: sums {mine} and {other}")
        best = sorted(other)[-2:]
        near = len(best) == 2 and best[1] - best[0] < 2e-5
    for metric, value in theirs["metrics"].items():
        own = ours[metric]
        own, value = (own[-1], value[-1]) if isinstance(value, list) else (own, value)
        if abs(float(own) - float(value)) > 1e-9:
            report["near" if near else "wrong"].append(f"{where}: {metric} {own} and {value}")


def task_generates(sample):
    return isinstance(sample["arguments"]["gen_args_0"].get("arg_1"), dict)


def main():
    program, python, model, folder, length, *tasks = sys.argv[1:]
    report = {"items": 0, "sums": 0, "texts": 0, "largest": 0.0, "near": [], "wrong": []}
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        copy = copy_model(model, temporary, int(length))
        server, url = start_server(program, copy, temporary)
        try:
            subprocess.run([python, str(HERE / "reference.py"), "evaluate", folder, url + "/v1/completions", str(copy), str(temporary / "reference.json"), length, *tasks],
                           check=True, env={"HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin", "HOME": str(temporary), "TQDM_DISABLE": "1"})
        finally:
            server.terminate()
            server.wait(60)
        reference = json.loads((temporary / "reference.json").read_text())
        ours = troupe_samples(program, copy, pathlib.Path(folder), temporary / "ours", tasks)
    for task, found in reference.items():
        own = {(s["doc_id"], s["filter"]): s for s in ours[task]["samples"]}
        if len(own) != len(found["samples"]):
            report["wrong"].append(f"{task}: {len(own)} items and {len(found['samples'])}")
        for sample in found["samples"]:
            report["items"] += 1
            compare_item(task, own[sample["doc_id"], sample["filter"]], sample, report)
        for key, value in found["results"].items():
            if isinstance(value, float) and abs(value - ours[task]["results"][key]) > 1e-6 * max(1, abs(value)) and not report["near"]:
                report["wrong"].append(f"{task}: {key} {ours[task]['results'][key]} and {value}")
    print(f"max_position_embeddings {length}: {report['items']} items, {report['sums']} sums (largest difference {report['largest']:.2e}), {report['texts']} texts, "
          f"{len(report['near'])} near ties, {len(report['wrong'])} differences")
    for line in report["near"] + report["wrong"]:
        print(" ", line[:600])
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
