#!/usr/bin/env python3
"""The tests of the servers of vLLM and llama.cpp, against troupe.

run.py TROUPE ROOT DIR [--only WORD]

DIR has their sources in vllm/ and llama.cpp/ (one of them is enough). The files that run, and the tests in them that cannot pass, are in vllm.txt and
llama.cpp.txt beside this program: a line FILE [KIND] names a file and the model it is run with (text, vectors or scores), and an indented line below
it TEST REASON a test, or the beginning of the names of several: "refused NAME": troupe answers 400 and names it; "n/a WHY": the test is about something
that troupe does not claim. The exit code is 1 if a test fails that is not named.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OUTCOMES = ("passed", "refused", "n/a", "failed")


def read_list(path):
    """{file: (kind, [(beginning of a test's name, reason)])}"""
    files, named = {}, None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        first, _, rest = line.strip().partition(" ")
        if line.startswith(" "):
            named.append((first, rest))
        else:
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
    (to / "utils.py").write_text(text)
    for file in files:
        path = to / file
        text = re.sub(r'"/(chat/completions|completions|embeddings|responses)"', r'"/v1/\1"', path.read_text())
        path.write_text(re.sub(r'(model"?[=:] *)"(davinci-002|gpt-[\w.-]+|text-embedding-3-small|test)"', r"\1server.model_alias", text))


def trained(troupe, root, folder, algorithm, row, *settings):
    """A model of two steps, for tests that need a score head or an adapter."""
    rows = folder / "rows.jsonl"
    rows.write_text((row + "\n") * 8)
    subprocess.run([troupe, "train", "--algorithm", algorithm, "--model", root / "tests/data/models/stories260k/hf", "--data", rows, "--output",
                    folder / algorithm, "--steps", "2", "--set", "train.batch_size=4", *settings], check=True, capture_output=True)
    return folder / algorithm / "latest"


def run_file(file, folder, environment):
    """[(name, outcome, message)] of pytest."""
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line", "-q", "--timeout=120", "-o", "asyncio_mode=strict",
                           "-W", "ignore", file], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    found = []
    for line in done.stdout.splitlines():
        row = re.match(r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?:\[\d+\] )?(\S+?)(?:::(.*?))?(?: - (.*)|: (.*))?$", line)
        if row:
            found.append((row[3] or row[2], {"PASSED": "passed", "XPASS": "passed", "SKIPPED": "n/a", "XFAIL": "n/a"}.get(row[1], "failed"), row[4] or row[5] or ""))
    if not found:
        found.append((file, "failed", (done.stdout + done.stderr)[-800:]))
    return found


def judged(outcome, name, named):
    if outcome == "passed":
        return outcome
    for beginning, reason in named:
        if outcome == "failed" and name.startswith(beginning):
            return reason.split(" ")[0]
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("trees", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files whose names have this word")
    args = parser.parse_args()
    troupe, root = args.troupe.resolve(), args.root.resolve()
    sums, failures, trees = collections.Counter(), [], 0
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
                copy(args.trees / peer, files, folder / "tree")
            scores = trained(troupe, root, folder, "orm", '{"prompt": "Once", "chosen": " upon a time", "rejected": "xx"}')
            adapter = trained(troupe, root, folder, "sft", '{"prompt": "Once", "completion": " upon a time"}', "--set", "lora.rank=2")
            for file, (kind, named) in files.items():
                model = {"TROUPE_MODEL": str(scores)} if kind == "scores" else {"TROUPE_RUNNER": "pooling"} if kind == "vectors" else {}
                environment = dict(os.environ, TROUPE=str(troupe), TROUPE_ROOT=str(root), LLAMA_SERVER_BIN_PATH=str(HERE / "llama_server.py"),
                                   TROUPE_ADAPTER=str(adapter), HF_HUB_OFFLINE="1", COLUMNS="4000", TOKENIZERS_PARALLELISM="false", PYTHONPATH=str(folder / "tree"), **model)
                counts = collections.Counter()
                for name, outcome, message in run_file(file, folder / "tree", environment):
                    result = judged(outcome, name, named)
                    counts[result] += 1
                    if result == "failed":
                        failures.append(f"{file}::{name}: {message}")
                sums.update(counts)
                print(f"| {peer} {file} | " + " | ".join(str(counts[each]) for each in OUTCOMES) + " |", flush=True)
    if trees == 0:
        sys.exit(f"{args.trees}: expected folders vllm or llama.cpp with the sources of these projects")
    print("| all | " + " | ".join(str(sums[each]) for each in OUTCOMES) + " |")
    for each in failures:
        print("failed:", each)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
