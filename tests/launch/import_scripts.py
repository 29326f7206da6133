"""Shell scripts of other tools, evaluated by `troupe import` and by bash: equal words.

Usage: import_scripts.py TROUPE FOLDER [--record]. Each script below FOLDER that starts a training
program is run by bash without network, in a folder of its own, with a PATH in which every program
is replaced by one that records its arguments. The words of the training command must be those of
`troupe import --command`, word for word; a word that import cannot evaluate must have the same
beginning, and its script exit code 3. The method must be that of algorithm.adv_estimator.
--record writes the words that bash passed beside each script (SCRIPT.words), one a line.
"""

import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

PROGRAMS = (
    "accelerate awk basename cat chmod cp curl cut date deepspeed git grep head hf hostname "
    "huggingface-cli llamafactory-cli ln ls mkdir mv nproc npu-smi nsys numactl nvidia-smi pip "
    "python python3 ray readlink realpath rm sbatch sed seq sleep srun tail tee torchrun touch tr "
    "trl uname uv wc wget whoami"
).split()
# Probing the device is what a script cannot know; the arguments are those of SFT scripts.
ENVIRONMENT = {"DEVICE": "gpu"}
ARGUMENTS = ["8", "/save"]
TRAINING = re.compile(r"verl\.(?:trainer|experimental)\.(?!main_gen|main_eval)|openrlhf\.cli\.train|_gpt\.py$")
RECORDER = """#!/bin/bash -p
printf '%s\\0' "${0##*/}" "$@" '
' > "$RECORD.$$"
"""
METHODS = {
    "gae": "ppo", "reinforce_plus_plus": "reinforce_pp",
    "reinforce_plus_plus_baseline": "reinforce_pp_baseline", "rloo_vectorized": "rloo",
    "opo": "grpo", "gpg": "grpo", "grpo_passk": "grpo",
}


def arguments_of(path):
    with open(path, encoding="utf-8", errors="replace") as script:
        return ARGUMENTS if re.search(r"\$\{?1\b|\$#", script.read()) else []


def words_of_bash(path):
    """The training command with the most words, or None."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/bin")
        os.makedirs(folder + "/work")
        for name in PROGRAMS:
            with open(f"{folder}/bin/{name}", "w", encoding="utf-8") as program:
                program.write(RECORDER)
            os.chmod(f"{folder}/bin/{name}", 0o755)
        # Limits cannot be raised here, which would end scripts with set -e.
        with open(folder + "/setup", "w", encoding="utf-8") as setup:
            setup.write("ulimit() { :; }\n")
        os.symlink("/usr/bin/dirname", folder + "/bin/dirname")
        record = folder + "/record"
        environment = {"PATH": folder + "/bin", "HOME": "~", "RECORD": record,
                       "BASH_ENV": folder + "/setup", **ENVIRONMENT}
        try:
            subprocess.run(
                ["/bin/bash", path, *arguments_of(path)], cwd=folder + "/work", env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=60, check=False)
        except subprocess.TimeoutExpired:
            pass
        commands = []
        # Each program has a file of its own: a script may start several at the same time.
        for each in sorted(glob.glob(record + ".*")):
            with open(each, encoding="utf-8", errors="replace") as recorded:
                commands += [
                    [word.replace(folder + "/work", os.getcwd()) for word in command.split("\0")[:-1]]
                    for command in recorded.read().split("\n\0")
                ]
    commands = [each for each in commands if any(TRAINING.search(word) for word in each)]
    return max(commands, key=len) if commands else None


def imported(troupe, path, *options):
    environment = [text for name, value in ENVIRONMENT.items()
                   for text in ("--env", f"{name}={value}")]
    return subprocess.run(
        [troupe, "import", *environment, *options, "--", path, *arguments_of(path)],
        capture_output=True, text=True, timeout=60, check=False)


def same(ours, theirs, evaluated):
    """True if the words are equal, or begin so where they could not all be evaluated."""
    if ours == theirs:
        return True
    if evaluated or len(ours) != len(theirs):
        return False
    beginnings = [re.split(r"\$", word)[0] for word in ours]
    return all(a == b or ("$" in a and b.startswith(start))
               for a, b, start in zip(ours, theirs, beginnings))


def method_of(words):
    for word in reversed(words):
        if word.startswith("algorithm.adv_estimator="):
            name = word.split("=", 1)[1].strip("'\"")
            return METHODS.get(name, name)
    return "sft" if any("sft" in word for word in words[:12]) else "ppo"


def main():
    troupe, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    paths = sorted(os.path.join(root, name) for root, _, names in os.walk(folder)
                   for name in names if name.endswith(".sh"))
    counts = {"equal": 0, "equal but for what is not evaluated": 0, "refused": 0,
              "stopped in bash": 0, "different": 0, "another method": 0}
    for path in map(os.path.abspath, paths):
        theirs = words_of_bash(path)
        if "--record" in sys.argv and theirs:
            with open(path + ".words", "w", encoding="utf-8") as record:
                record.write("".join(word + "\n" for word in theirs))
        if theirs is None:
            counts["stopped in bash"] += 1
            continue
        got = imported(troupe, path, "--command")
        ours = shlex.split(got.stdout)
        if not ours and got.returncode in (3, 6):
            counts["refused"] += 1
            print("refused", path, got.stderr.strip()[-300:])
            continue
        if not same(ours, theirs, got.returncode == 0):
            counts["different"] += 1
            print("different", path, got.returncode, got.stderr[-200:],
                  [pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:3])
            continue
        counts["equal" if ours == theirs else "equal but for what is not evaluated"] += 1
        written = imported(troupe, path)
        method = re.search(r"^algorithm: (\S+)", written.stdout, re.M)
        expected = method_of(theirs)
        if not method and "has no equivalent" in written.stderr:
            counts["refused"] += 1
            print("refused", path, written.stderr.strip()[-300:])
            continue
        presets = {"grpo": ("cispo", "gspo", "sapo", "gmpo", "dapo", "drgrpo", "dr_grpo", "vespo")}
        if not method or method[1] not in (expected, *presets.get(expected, ())):
            counts["another method"] += 1
            print("method", path, expected, method and method[1], written.stderr[-300:])
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    sys.exit(bool(counts["different"] or counts["another method"] or not counts["equal"]))


if __name__ == "__main__":
    main()
