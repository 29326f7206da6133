"""How well `troupe import` reads the files of other tools: one row for each folder.

Usage: import_table.py TROUPE FOLDER... [--lost]. A folder is a copy of a repository, or has .jsonl
files of command lines ({"script": ..., "commands": [[WORD, ...], ...]}). Read are its YAML files,
its shell scripts, and the commands in the docstrings of its Python files. Printed are the files; of
those that train by a method that troupe has, how many were converted to that method, to another
one, or refused; of the others, how many were converted nevertheless; the exit codes; and how many
settings were lost (without an equivalent, not known, not evaluated, not usable). `train` must accept every run
file of a conversion with exit code 0, but for models and data that are not here. --lost lists the
settings.
"""

import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

METHODS = {
    "pt": "pretrain", "sft": "sft", "rm": "orm", "ppo": "ppo", "dpo": "dpo", "kto": "kto",
    "reward": "orm", "reward_modeling": "orm", "grpo": "grpo", "rloo": "rloo", "prm": "prm",
    "cpo": "cpo", "orpo": "orpo", "gae": "ppo", "reinforce_plus_plus": "reinforce_pp",
    "reinforce_plus_plus_baseline": "reinforce_pp_baseline", "remax": "remax", "reinforce":
    "reinforce_pp", "reinforce_baseline": "reinforce_pp_baseline", "group_norm": "grpo", "dr_grpo":
    "dr_grpo", "opo": "grpo", "gpg": "grpo", "grpo_passk": "grpo", "rloo_vectorized": "rloo",
    "orm": "orm", "simpo": "simpo", "pretrain": "pretrain", "ray_ppo": "ppo", "ray_grpo": "grpo", "trl_ppo": "ppo",
}
# Presets of the method that algorithm.adv_estimator names.
KINDS = {"grpo": {"cispo", "gspo", "sapo", "gmpo", "dapo", "dr_grpo", "drgrpo", "vespo"},
         "dpo": {"simpo", "orpo", "ipo"}, "cpo": {"simpo"}}
# Probing the device is what a script cannot know.
ENVIRONMENT = ["--env", "DEVICE=gpu"]
COMMAND = re.compile(r"^ *(?:[A-Z_]+=\S+ )*(?:accelerate launch|python3?|torchrun|trl) .*", re.M)
TRL = re.compile(r"(?:trl/scripts|examples/scripts)/(\w+)\.py|^ *trl (\w+)")


def commands_in(text):
    """Shell commands of a docstring or a page; a backslash continues a line."""
    lines, out = text.split("\n"), []
    while lines:
        line = lines.pop(0)
        if not COMMAND.match(line):
            continue
        words = [line.strip()]
        while words[-1].endswith("\\") and lines:
            words.append(lines.pop(0).strip())
        out.append(" ".join(word.rstrip("\\") for word in words))
    return out


def method_of_yaml(text):
    """The method that a configuration names, None if it does not train, or "?"."""
    def value(key):
        found = re.search(rf"^{key}: *['\"]?([\w-]+)", text, re.M)
        return found and found[1]
    if value("stage"):
        if value("do_train") == "false" or (value("do_predict") == "true" and not value("do_train")):
            return None
        loss = value("pref_loss")
        return loss if loss in ("simpo", "orpo") else METHODS.get(value("stage"))
    if value("export_dir") or value("infer_backend"):
        return None
    return "?"


def method_of_words(words):
    line = " ".join(words)
    for key in ("algorithm.adv_estimator", "--advantage_estimator", "--algo.advantage.estimator"):
        found = re.findall(rf"{re.escape(key)}[= ]['\"]?(\w+)", line)
        if found:
            return METHODS.get(found[-1], found[-1])
    if "verl.trainer" in line:
        return None if "main_gen" in line or "main_eval" in line else (
            "sft" if "sft_trainer" in line else "ppo")
    found = re.search(r"openrlhf\.cli\.train_(\w+)", line)
    if found:
        return METHODS.get(found[1].replace("_ray", ""))
    if "posttrain_gpt.py" in line:
        found = re.findall(r"--stage (\w+)", line)
        return METHODS.get(found[-1]) if found else None
    if "pretrain_gpt.py" in line:
        return "sft" if "--is-instruction-dataset" in line else "pretrain"
    found = TRL.search(line)
    if found:
        return METHODS.get((found[1] or found[2]).split("_")[0])  # dpo_vlm
    if "llamafactory-cli train" in line:
        found = re.search(r"--stage (\w+)", line)
        return METHODS.get(found[1]) if found else "?"
    return None


def inputs_of(folder, scratch):
    """(name, arguments of import, expected method) of each file that may be a run."""
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(root, name)
            short = os.path.relpath(path, folder)
            if re.match(r"(tests|docker|\.github)/|\.pre-commit", short) or os.path.islink(path):
                continue
            if not name.endswith((".yaml", ".yml", ".sh", ".jsonl", ".py")):
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if name.endswith((".yaml", ".yml")):
                yield short, [path], method_of_yaml(text)
            elif name.endswith(".sh"):
                yield short, [path], "bash"
            elif name.endswith(".py") and "scripts/" in short:
                for i, command in enumerate(commands_in(text)):
                    if not TRL.search(command):
                        continue
                    script = f"{scratch}/{i}-{name}.sh"
                    with open(script, "w", encoding="utf-8") as file:
                        file.write(command + "\n")
                    yield f"{short}:{i}", [script], "bash"
            elif name.endswith(".jsonl"):
                for line in text.splitlines():
                    entry = json.loads(line)
                    for words in map(with_placeholders, entry.get("commands", [])):
                        yield f"{short}:{entry['script']}", ["--", *words], method_of_words(words)


def with_placeholders(words):
    """A placeholder, as in "--save your model save path", as one word: its user replaces it."""
    out = []
    for word in words:
        inside = (out and out[-1].startswith("your") and
                  not word.startswith("-") and not word.endswith(".py"))
        out[-1:] = [f"{out[-1]}_{word}"] if inside else [*out[-1:], word]
    return out


def run(troupe, *words):
    return subprocess.run([troupe, *words], capture_output=True, text=True, timeout=120,
                          check=False)


def lost_of(report):
    """The settings of the report's sections that are lost."""
    out, section = [], ""
    for line in report.splitlines():
        if line and not line.startswith(" "):
            section = line
        elif re.match(r"Without an equivalent|Not (known|evaluated|usable)", section) and line.strip():
            out.append(line.split()[0])
    return out


def refused_run(troupe, path):
    """Why `train` refuses a run file, but for files that are not here; or ""."""
    said = run(troupe, "explain", "--config", path)
    lines = [line.strip(" -") for line in said.stderr.splitlines()]
    missing = re.compile(
        r"no (file|model|such|config|directory)|not a (file|model|directory)|is no |hf download|"
        r"has no config|does not exist|no file or folder|cannot be (found|read)|Download|"
        r"paths are relative|problem|missing|config.json", re.I)
    return "" if said.returncode in (0, 4) else "; ".join(
        line for line in lines if line and not missing.search(line))


def main():
    troupe = os.path.abspath(sys.argv[1])
    print("| files | train | method right | other method | refused | not of a method here: "
          "converted / refused | exit codes | settings lost | run files that train refuses |")
    failed = False
    for folder in [each for each in sys.argv[2:] if not each.startswith("--")]:
        codes, lost = collections.Counter(), collections.Counter()
        counts, wrong = collections.Counter(), []
        with tempfile.TemporaryDirectory() as scratch:
            for name, words, expected in inputs_of(folder, scratch):
                output = f"{scratch}/run.yaml"
                if os.path.exists(output):
                    os.remove(output)
                if expected == "bash":
                    words = [*ENVIRONMENT, "--", *words]
                    command = run(troupe, "import", "--command", *words)
                    expected = method_of_words(shlex.split(command.stdout))
                said = run(troupe, "import", "--output", output, *words)
                codes[said.returncode] += 1
                counts["files"] += 1
                made = ""
                if os.path.exists(output):
                    with open(output, encoding="utf-8") as file:
                        made = re.search(r"^algorithm: (\S+)", file.read(), re.M)[1]
                    lost.update(lost_of(said.stderr))
                if said.returncode == 0:
                    why = refused_run(troupe, output)
                    if why:
                        wrong.append(f"{name}: train refuses its run file: {why}")
                        counts["bad run files"] += 1
                if expected in (None, "?"):
                    counts["converted" if made and said.returncode == 0 else "unconverted"] += 1
                    if made and said.returncode == 0 and expected is None:
                        wrong.append(f"{name}: converted to {made}, exit code 0")
                    continue
                counts["train"] += 1
                if made == expected or made in KINDS.get(expected, ()):
                    counts["right"] += 1
                elif made:
                    counts["other"] += 1
                    wrong.append(f"{name}: {made} instead of {expected}")
                else:
                    counts["refused"] += 1
                    wrong.append(f"{name}: refused ({said.returncode}): "
                                 f"{said.stderr.strip().splitlines()[-1][:200]}")
        shown = " ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        print(f"| {folder} | {counts['files']} | {counts['train']} | {counts['right']} | "
              f"{counts['other']} | {counts['refused']} | "
              f"{counts['converted']} / {counts['unconverted']} | {shown} | "
              f"{sum(lost.values())} of {len(lost)} names | {counts['bad run files']} |", flush=True)
        for line in wrong:
            print("  ", line)
        if "--lost" in sys.argv:
            print("  lost:", ", ".join(f"{key} {count}" for key, count in lost.most_common()))
        failed |= bool(counts["other"] or counts["bad run files"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
