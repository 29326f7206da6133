"""What a published command must have left: settings, log, checkpoints, documents."""

import json
import math
import os
import re
import struct

# Flags whose number is that of their key; of the others, the key must be there.
SAME = {"adam-eps", "attention-dropout", "clip-grad", "global-batch-size", "hidden-dropout",
        "lora-alpha", "lora-r", "lr", "seed", "seq-length", "train-iters",
        "weight-decay", "tensor-model-parallel-size", "pipeline-model-parallel-size",
        "context-parallel-size", "save-interval", "cp-window-size", "gamma-beta-ratio",
        "simpo-beta"}
ITERATION = re.compile(r"iteration +(\d+)/ +\d+ .*")
LOSS = re.compile(r"loss: ([-+0-9.E]+|nan|inf)")


def read_config(path):
    """{"group.key": text} of a run's config.yaml: maps by indentation, other values as written."""
    out, above = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            found = re.match(r"( *)([\w.]+): ?(.*)", line)
            if not found:
                continue
            depth = len(found[1])
            above = [(at, name) for at, name in above if at < depth] + [(depth, found[2])]
            out[".".join(name for _, name in above)] = found[3].strip()
    return out


def settings_problems(flags, classes, path):
    """The acting flags whose key config.yaml lacks, or has with another number."""
    if not os.path.exists(path):
        return [f"no {os.path.basename(path)}"]
    config, problems = read_config(path), []
    # The files of --lora-load say rank and alpha.
    given = {"lora-r", "lora-alpha"} if "lora-load" in flags else set()
    for name, values in flags.items():
        key = classes.get(name, (None, None))[1]
        if name not in SAME - given or not values or key is None:
            continue
        found = config.get(key)
        if found is None:
            problems.append(f"--{name}: config.yaml has no {key}")
        elif not math.isclose(float(found), float(values[0]), rel_tol=1e-12):
            problems.append(f"--{name} {values[0]}: config.yaml has {key} {found}")
    return problems


def log_problems(text):
    """Two iterations with finite losses, each once."""
    lines = [line for line in text.splitlines() if ITERATION.search(line)]
    numbers = [int(ITERATION.search(line)[1]) for line in lines]
    losses = [float(loss) for line in lines for loss in LOSS.findall(line)]
    if numbers != [1, 2]:
        return [f"expected the log lines of iterations 1 and 2, found {numbers}"]
    if not losses or not all(map(math.isfinite, losses)):
        return [f"losses that are not finite: {losses}"]
    return []


def checkpoint_problems(save):
    """iter_0000002 with a file of weights, and the file that names it."""
    problems = []
    try:
        with open(save + "/latest_checkpointed_iteration.txt", encoding="utf-8") as file:
            if file.read().strip() != "2":
                problems.append("latest_checkpointed_iteration.txt is not 2")
    except OSError:
        problems.append("no latest_checkpointed_iteration.txt")
    folder = save + "/iter_0000002"
    ranks = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if not any(os.path.exists(f"{folder}/{rank}/model_optim_rng.pt") for rank in ranks):
        problems.append("no iter_0000002/mp_rank_*/model_optim_rng.pt")
    return problems


def sequences(prefix):
    """The number of sequences of PREFIX.idx, whose header is checked."""
    with open(prefix + ".idx", "rb") as file:
        head = file.read(34)
    magic, version, _, count, entries = struct.unpack("<9sQBQQ", head)
    if magic != b"MMIDIDX\0\0" or version != 1 or entries != count + 1:
        raise ValueError(f"{prefix}.idx: no index of {count} sequences")
    return count


def documents_problems(folder, expected):
    """Each dataset below a folder has the expected number of sequences; None: at least one."""
    prefixes = sorted(path[:-4] for path in (
        os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
        if path.endswith(".idx"))
    if not prefixes:
        return ["no dataset was written"]
    counts = {os.path.basename(prefix): sequences(prefix) for prefix in prefixes}
    wrong = {name: count for name, count in counts.items()
             if (count < 1 if expected is None else count != expected)}
    return [f"expected {expected or 'some'} documents, found {wrong}"] if wrong else []


def tensors(path):
    """{name: (type, shape, bytes)} of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        body = file.read()
    return {name: (each["dtype"], tuple(each["shape"]), body[slice(*each["data_offsets"])])
            for name, each in head.items() if name != "__metadata__"}


def differing(a, b, name):
    """The names of tensors that two folders do not share, or have with other contents."""
    ours, theirs = (tensors(f"{folder}/{name}.safetensors") for folder in (a, b))
    return {each for each in ours.keys() | theirs.keys() if ours.get(each) != theirs.get(each)}


def same_tensors(a, b, name="model"):
    """Problems of two folders that should have the same tensors."""
    different = differing(a, b, name)
    return [f"{len(different)} tensors differ, such as {min(different)}"] if different else []


def changed_tensors(a, b):
    """Problems of a model and the same with an adapter: the weights of all linear layers differ."""
    known = tensors(a + "/model.safetensors").keys() == tensors(b + "/model.safetensors").keys()
    different = differing(a, b, "model")
    if not known or not different or any("norm" in each for each in different):
        return [f"expected other weights of linear layers, found {sorted(different)[:4]}"]
    return []
