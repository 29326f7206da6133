#!/usr/bin/env python3
"""The tests of the servers of vLLM and llama.cpp, against troupe.

run.py TROUPE ROOT DIR [--only WORD] [--results FILE]

DIR has their sources in vllm/ and llama.cpp/ (one of them is enough). The files that run, and the tests in them that cannot pass, are in vllm.txt and
llama.cpp.txt beside this program. A line FILE [KIND] names a file and the model it is run with: text, vectors, scores, or short, which is text with a
context of at most 2,048 tokens, as this model never ends an answer. An indented line below it, TEST REASON, names a test with its parameters or, with *
at its end, all whose names begin so: "refused NAME": troupe answers 400 and names it; "n/a WHY": the test is about something that troupe does not claim.
A test that skips itself, or that starts a server with an option that has no translation, is n/a for the reason it gives. The exit code is 1 if a test
fails that is not named, or if a line names no test.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# tests.sh of llama.cpp leaves these out.
SKIP_SLOW = '''

def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip("a slow test, which llama.cpp runs on demand only"))
'''
KINDS = {"text": {}, "short": {"TROUPE_LONGEST": "2048"}, "vectors": {"TROUPE_RUNNER": "pooling"}}
OUTCOMES = ("passed", "refused", "n/a", "failed")


def read_list(path):
    """{file: (kind, [(a test's name, or the beginning of names and *, reason)])}"""
    files, named = {}, None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            row = re.fullmatch(r" +(.+?) ((?:refused|n/a) .+)", line)
            if row is None:
                sys.exit(f"{path}: expected TEST refused NAME or TEST n/a WHY, found {line.strip()}")
            named.append((row[1], row[2]))
        else:
            first, _, rest = line.strip().partition(" ")
            named = []
            files[first] = (rest or "text", named)
    return files


def copy_vllm(tree, files, to):
    shutil.copyfile(HERE / "vllm_conftest.py", to / "tests_conftest.py")
    for file in files:
        target = to / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / file, target)
        for folder in pathlib.Path(file).parents:
            for name in ("__init__.py", "conftest.py"):
                source, copied = tree / folder / name, to / folder / name
                if str(folder) not in (".", "tests") and source.exists() and not copied.exists():
                    shutil.copyfile(source, copied)
    (to / "tests_conftest.py").rename(to / "tests/conftest.py")
    (to / "tests/__init__.py").touch()
    shutil.copyfile(HERE / "vllm_utils.py", to / "tests/utils.py")


def copy_llama(tree, files, to):
    tests = tree / "tools/server/tests"
    shutil.copytree(tests, to, dirs_exist_ok=True)
    text = (to / "utils.py").read_text()
    # Models are not fetched, the endpoints of OpenAI are below /v1 only, and the name of the model counts.
    text = re.sub(r"(def load_all\(\) -> None:\n)", r"\1        return\n", text)
    text, count = re.subn(r"( +)(args = \[str\(arg\) for arg in)", r'\1__import__("llama_server").skip_untranslated(server_args)\n\1\2', text)
    assert count == 1, "utils.py: expected one list of arguments"
    (to / "utils.py").write_text(text)
    with open(to / "conftest.py", "a", encoding="utf-8") as conftest:
        conftest.write(SKIP_SLOW)
    for file in files:
        path = to / file
        text = re.sub(r'"/(chat/completions|completions|embeddings|responses)"', r'"/v1/\1"', path.read_text())
        text = text.replace("../../../models/templates", str(tree / "models/templates"))
        path.write_text(re.sub(r'(model"?[=:] *)"(davinci-002|gpt-[\w.-]+|text-embedding-3-small|test)"', r"\1server.model_alias", text))


def trained(troupe, root, folder, algorithm, row, *settings):
    """A model of two steps, for tests that need a score head or an adapter."""
    rows = folder / "rows.jsonl"
    rows.write_text((row + "\n") * 8)
    subprocess.run([troupe, "train", "--algorithm", algorithm, "--model", root / "tests/data/models/stories260k/hf", "--data", rows, "--output",
                    folder / algorithm, "--steps", "2", "--set", "train.batch_size=4", *settings], check=True, capture_output=True)
    return folder / algorithm / "latest"


def run_file(file, folder, environment):
    """[(name, outcome, message)] of pytest: of each test the first that is not a pass, if there is one."""
    report = folder.parent / "report.jsonl"
    report.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-p", "report", "--tb=short", "-q", "--timeout=900", "-o", "asyncio_mode=strict",
                           "-W", "ignore", file], cwd=folder, env=dict(environment, TROUPE_REPORT=str(report)), capture_output=True, text=True, check=False, timeout=3600)
    found = {}
    for line in report.read_text().splitlines() if report.exists() else []:
        name, outcome, message = json.loads(line)
        outcome = {"skipped": "n/a"}.get(outcome, outcome)
        if name not in found or found[name][0] == "passed":
            found[name] = (outcome, message.strip().split("\n")[0])
    found = found or {"": ("failed", (done.stdout + done.stderr)[-800:])}
    return [(name or file, *rest) for name, rest in found.items()]


def names(line, test):
    return test.startswith(line[:-1]) if line.endswith("*") else test == line


def judged(outcome, name, named):
    for line, reason in named:
        if outcome == "failed" and names(line, name):
            return reason.split(" ")[0]
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("trees", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files whose names have this word")
    parser.add_argument("--results", type=pathlib.Path, help="a file for every test's file, name, result and message, a line of JSON each")
    args = parser.parse_args()
    troupe, root = args.troupe.resolve(), args.root.resolve()
    sums, failures, results, trees = collections.Counter(), [], [], 0
    print("| file | passed | refused | n/a | failed |\n|---|---|---|---|---|")
    for peer, copy in (("vllm", copy_vllm), ("llama.cpp", copy_llama)):
        if not (args.trees / peer).is_dir():
            continue
        trees += 1
        files = {file: value for file, value in read_list(HERE / f"{peer}.txt").items() if args.only in file}
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            (folder / "tree").mkdir()
            if files:
                copy((args.trees / peer).resolve(), files, folder / "tree")
            scores = trained(troupe, root, folder, "orm", '{"prompt": "Once", "chosen": " upon a time", "rejected": "xx"}')
            adapter = trained(troupe, root, folder, "sft", '{"prompt": "Once", "completion": " upon a time"}', "--set", "lora.rank=2")
            for file, (kind, named) in files.items():
                model = {"TROUPE_MODEL": str(scores)} if kind == "scores" else KINDS[kind]
                environment = dict(os.environ, TROUPE=str(troupe), TROUPE_ROOT=str(root), LLAMA_SERVER_BIN_PATH=str(HERE / "llama_server.py"),
                                   TROUPE_ADAPTER=str(adapter), HF_HUB_OFFLINE="1", COLUMNS="4000", TOKENIZERS_PARALLELISM="false", PYTHONPATH=f"{folder / 'tree'}:{HERE}", **model)
                counts = collections.Counter()
                found = run_file(file, folder / "tree", environment)
                for name, outcome, message in found:
                    result = judged(outcome, name, named)
                    counts[result] += 1
                    results.append([peer, file, name, outcome, result, message])
                    if result == "failed":
                        failures.append(f"{file}::{name}: {message}")
                failures += [f"{file}: the line {line} names no test" for line, _ in named if not any(names(line, name) for name, _, _ in found)]
                sums.update(counts)
                print(f"| {peer} {file} | " + " | ".join(str(counts[each]) for each in OUTCOMES) + " |", flush=True)
    if trees == 0:
        sys.exit(f"{args.trees}: expected folders vllm or llama.cpp with the sources of these projects")
    print("| all | " + " | ".join(str(sums[each]) for each in OUTCOMES) + " |")
    if args.results:
        args.results.write_text("".join(json.dumps(each) + "\n" for each in results))
    for each in failures:
        print("failed:", each)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
