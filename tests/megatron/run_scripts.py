"""Runs MindSpeed-LLM's published command lines with small models.

Usage: run_scripts.py TROUPE FILE... [--sample N] [--only TEXT] [--kind KIND] [--jobs N] [--list]. A FILE
is VERSION.jsonl (scripts.py). The commands of dense models in examples/mcore are run, evaluation
apart, as the script starts them, with the folder megatron/ beside TROUPE first in PATH. Paths,
sizes, iterations and batch sizes are replaced (replaced.py); models, checkpoints and data are made
(inputs.py). A command passes if it ends with 0 and left what checks.py asks for: settings, log
lines, iter_0000002; conversions come back with the same bytes; datasets have the documents. Equal
commands run once. --sample N runs every N-th, --only those whose script has TEXT, --kind those of a
kind. The exit code is 1 if a command fails whose script is not in exceptions.txt; exceptions that
run with these inputs are printed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import checks
import inputs
import replaced
import scripts
import small_models as models

TRAINS = ("pretrain_gpt", "posttrain_gpt")
HANDLERS = {"sft": "AlpacaStyleInstructionHandler", "dpo": "AlpacaStylePairwiseHandler",
            "simpo": "AlpacaStylePairwiseHandler", "orm": "AlpacaStylePairwiseHandler",
            "prm": "AlpacaStyleProcessRewardHandler",
            "trl_ppo": "PPOAlpacaStyleInstructionHandler"}


class Command:
    """One published command: where it is from, its program, flags and model."""

    def __init__(self, version, script, words):
        self.version, self.script, self.words = version, script, words
        self.program, rest = scripts.program_of(words)
        name = scripts.COMMANDS.get(self.program, self.program)
        self.kind = scripts.kind_of(self.program if name == self.program else name, rest)
        self.flags = replaced.read_flags(scripts.with_paths(rest))
        self.config = None
        if self.program == "preprocess_data" or (self.program in scripts.COMMANDS and
                                                 "/plm/" not in script):
            describes = self.program in TRAINS + ("inference",)
            self.config = models.config_of(script, self.flags, describes)

    def key(self):
        """Equal for commands that run in the same way."""
        return json.dumps([self.program, list(self.flags.items()), self.config])


def start_of(command, ranks):
    """The words before the flags, with one host."""
    script = next(word for word in command.words if word.endswith(".py"))
    before = command.words[:command.words.index(script)]
    if "torch.distributed.launch" in before:
        start = ["python", "-m", "torch.distributed.launch"]
    else:
        start = [before[0]]
    if before[0] == "torchrun" or len(start) > 1:
        start += ["--nproc_per_node", str(ranks), "--nnodes", "1", "--node_rank", "0",
                  "--master_addr", "localhost", "--master_port", "6001"]
    return start + [os.path.basename(script)]


class Runner:
    """Replaces the paths of a command by inputs, runs it and checks what it left."""

    def __init__(self, troupe, root):
        self.inputs = inputs.Inputs(troupe, root)
        self.troupe, self.root = troupe, root
        lines = subprocess.run([troupe, "flags", "--json"], text=True, check=True,
                               capture_output=True).stdout.splitlines()
        rows = [json.loads(line) for line in lines if line]
        self.classes = {row["flag"][2:]: (row["class"], row["key"]) for row in rows}

    def problems_of(self, command):
        if command.program not in scripts.COMMANDS:
            return [f"no program {command.program}"]
        if command.config is None:
            return ["a family without a small model"]
        folder = tempfile.mkdtemp(prefix="run-", dir=self.root)
        kind = scripts.COMMANDS[command.program]
        try:
            act = {"convert": self.convert, "preprocess": self.preprocess,
                   "inference": self.generate}.get(kind, self.train)
            return act(command, dict(command.flags), folder)
        except (inputs.Failed, OSError, ValueError, KeyError) as problem:
            return [f"{type(problem).__name__}: {problem}"]
        except subprocess.TimeoutExpired as problem:
            return [f"no end within {problem.timeout} s"]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def start(self, command, ranks, flags, folder, text=""):
        path = os.path.join(os.path.dirname(self.troupe), "megatron")
        words = ["env", f"PATH={path}:{os.environ['PATH']}", *start_of(command, ranks),
                 *replaced.words_of(flags)]
        return inputs.run(words, folder, text)

    def place_model(self, command, flags):
        """The paths of a model and its tokenizer."""
        model = self.inputs.model(command.config)
        for name, path in (("tokenizer-name-or-path", model),
                           ("tokenizer-model", model + "/tokenizer.model"),
                           ("hf-cfg-dir", model)):
            if name in flags:
                flags[name] = [path]
        hub = "enable-hf2mg-convert" in flags
        for name in ("load", "ref-model"):
            if name in flags:
                flags[name] = [model if hub else self.inputs.megatron(command.config)]
        if "lora-load" in flags:
            flags["lora-load"] = [self.inputs.adapter(command.config, flags)]

    def place_data(self, command, flags):
        stage = flags.get("stage", ["sft" if "is-instruction-dataset" in flags else "pretrain"])[0]
        if "handler-name" in flags:
            flags["data-path"] = [self.inputs.rows(flags)]
            return
        more = {name: flags[name] for name in ("placeholder-token", "reward-tokens")
                if name in flags}
        if stage in HANDLERS and stage != "prm":
            more["prompt-type"] = flags.get("prompt-type", ["empty"])
        handler = HANDLERS.get(stage, "GeneralPretrainHandler")
        flags["data-path"] = [self.inputs.token_files(command.config, handler, more)]

    def train(self, command, flags, folder):
        ranks = replaced.training(flags, command.config)
        self.place_model(command, flags)
        self.place_data(command, flags)
        if "reward-model" in flags:
            flags["reward-model"] = [self.inputs.reward_model(command.config)]
        flags["save"] = [folder + "/save"]
        # Some scripts leave it out, with which Megatron does not start.
        flags.setdefault("train-iters", ["2"])
        out, err = self.start(command, ranks, flags, folder)
        problems = checks.settings_problems(flags, self.classes, folder + "/save/config.yaml")
        return (problems + checks.log_problems(out + err) +
                checks.checkpoint_problems(folder + "/save"))

    def generate(self, command, flags, folder):
        ranks = replaced.inference(flags, command.config)
        self.place_model(command, flags)
        out, _ = self.start(command, ranks, flags, folder, "Hello\nq\n")
        chats = flags.get("task", ["chat"]) == ["chat"]
        problems = [] if "task" in flags or "greedy" in out else ["no answer to the prompt"]
        return problems + ([] if not chats or out.strip() else ["no answer in the dialogue"])

    def preprocess(self, command, flags, folder):
        flags["input"] = [self.inputs.rows(flags)]
        model = self.inputs.model(command.config)
        for name in ("tokenizer-name-or-path", "tokenizer-model"):
            if name in flags:
                flags[name] = [model + ("/tokenizer.model" if name.endswith("-model") else "")]
        if "seq-length" in flags:
            flags["seq-length"] = ["512"]
        flags["output-prefix"] = [folder + "/out/data"]
        self.start(command, 1, flags, folder)
        packs = "pack" in flags or "neat-pack" in flags
        return checks.documents_problems(folder + "/out", None if packs else 12)

    def convert(self, command, flags, folder):
        replaced.conversion(flags)
        lora = "lora-load" in flags or "save-lora-to-hf" in flags
        adapter = self.inputs.adapter(command.config, flags) if lora else None
        reward = self.inputs.reward_model(command.config) if "orm" in flags else None
        start = reward + "/latest" if reward else self.inputs.model(command.config)
        model = folder + "/model"
        shutil.copytree(start, model, ignore=shutil.ignore_patterns("training"))
        if "tokenizer-model" in flags:
            flags["tokenizer-model"] = [model + "/tokenizer.model"]
        if "hf-cfg-dir" in flags:
            flags["hf-cfg-dir"] = [model]
        if "lora-load" in flags:
            flags["lora-load"] = [adapter]
        to_hub = flags["save-model-type"] == ["hf"]
        if flags["load-model-type"] == ["hf"]:
            flags["load-dir"] = [model]
            if reward:  # stored as published models are
                inputs.store_bf16(start + "/model.safetensors", model + "/model.safetensors")
        elif "save-lora-to-hf" in flags:
            flags["load-dir"] = [adapter]
        else:
            # The adapter is divided as its run was, on one rank.
            grid = (1, 1) if lora else (2, 2)
            flags["load-dir"] = [reward or self.inputs.megatron(command.config, *grid)]
        named = to_hub and "hf-cfg-dir" not in flags
        flags["save-dir"] = [model if named else folder + "/result"]
        out, _ = self.start(command, 1, flags, folder)
        result = out.strip().splitlines()[-1]
        if "save-lora-to-hf" in flags:
            return checks.same_tensors(adapter + "/latest", result, "adapter_model")
        if not to_hub:
            back = ["convert", "--load-model-type", "mg", "--save-model-type", "hf", "--load-dir",
                    result, "--save-dir", model] + (["--orm"] if "orm" in flags else [])
            result = inputs.run([self.troupe, *back], folder)[0].strip().splitlines()[-1]
        if lora:
            return checks.changed_tensors(model, result)
        return checks.same_tensors(model, result)


def read_commands(paths, only):
    of = scripts.classes()
    for path in paths:
        version = os.path.basename(path).removesuffix(".jsonl")
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                script = json.loads(line)
                name = script["script"]
                if of[version, name] != "dense" or not name.startswith("examples/mcore/"):
                    continue
                for words in script["commands"]:
                    if only in name and scripts.program_of(words)[0] != "evaluation":
                        yield Command(version, name, words)


def report(commands, results, listed):
    """Prints the table and what stops commands; returns whether all but exceptions passed."""
    allowed, good = scripts.exceptions(), True
    number, passed, stops = collections.Counter(), collections.Counter(), collections.Counter()
    failing = set()
    for command in commands:
        problems = results[command.key()]
        number[command.version, command.kind] += 1
        passed[command.version, command.kind] += not problems
        if not problems:
            continue
        failing.add((command.version, command.script))
        if (command.version, command.script) not in allowed:
            good = False
            stops[scripts.short("; ".join(problems).splitlines()[-1])] += 1
            if listed:
                print(f"{command.version} {command.script}", *problems, sep="\n    ")
    for key, count in sorted(number.items()):
        print(f"{key[0]:8} {key[1]:12} {passed[key]:4} of {count:4}")
    for problem, count in stops.most_common():
        print(f"{count:5}  {problem}")
    seen = {(command.version, command.script) for command in commands}
    for version, script in sorted((set(allowed) & seen) - failing):
        print(f"of the exceptions, with these inputs: {version} {script} ran")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, add_help=True,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=os.path.abspath)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kind", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    unique = {}
    commands = list(read_commands(options.files, options.only))
    for command in commands:
        if options.kind in command.kind:
            unique.setdefault(command.key(), command)
    chosen = dict(list(unique.items())[::options.sample])
    with tempfile.TemporaryDirectory(prefix="troupe-scripts-") as root:
        runner = Runner(options.troupe, root)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = dict(zip(chosen, pool.map(runner.problems_of, chosen.values())))
    commands = [command for command in commands if command.key() in results]
    print(f"{len(results)} different commands of {len(commands)}")
    return 0 if report(commands, results, options.list) else 1


if __name__ == "__main__":
    sys.exit(main())
