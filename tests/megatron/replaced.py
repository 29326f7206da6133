"""The words of a published command with the paths, sizes, iterations and batch sizes of a test."""

import small_models as models

SEQUENCE = 256
ROWS = 4  # of a batch


def read_flags(words):
    """{flag without dashes: [values]}, in their order; the last of two counts."""
    out, values = {}, []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, _, value = word[2:].partition("=")
            values = out[name.replace("_", "-")] = [value] if value else []
        else:
            values.append(word)
    return out


def words_of(flags):
    return [word for name, values in flags.items() for word in ("--" + name, *values)]


def number(flags, name, otherwise=1):
    return int(float(flags.get(name, [str(otherwise)])[0]))


def grid_of(flags):
    """Parallel sizes of at most two each, and of four ranks; one alone becomes two replicas."""
    tensor, pipeline, context = (min(2, number(flags, name)) for name in (
        "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"))
    if flags.get("context-parallel-algo") == ["hybrid_cp_algo"]:
        tensor, pipeline, context = 1, 1, 4
    if tensor * pipeline * context > 4:
        tensor = 1
    ranks = tensor * pipeline * context
    return tensor, pipeline, context, max(2, ranks)


def set_sizes(flags, config):
    """Replaces what describes the model's size and is given; the rest of a description stays."""
    latent = {key.replace("_", "-"): value for key, value in models.LATENT.items()}
    latent.update({"qk-head-dim": latent["qk-nope-head-dim"],
                   "qk-pos-emb-head-dim": latent["qk-rope-head-dim"]})
    sizes = {"num-layers": config["num_hidden_layers"], "hidden-size": config["hidden_size"],
             "ffn-hidden-size": config["intermediate_size"],
             "num-attention-heads": config["num_attention_heads"],
             "num-query-groups": config["num_key_value_heads"],
             "kv-channels": models.HEAD_SIZE, "vocab-size": config["vocab_size"],
             "padded-vocab-size": config["vocab_size"], "make-vocab-size-divisible-by": 1,
             "seq-length": SEQUENCE, **latent}
    for name, value in sizes.items():
        if name in flags:
            flags[name] = [str(value)]
    for name in ("long-factor", "short-factor"):
        if name in flags:
            factors = config["rope_scaling"][name.replace("-", "_")]
            flags[name] = [",".join(map(str, factors))]


def set_grid(flags, config):
    tensor, pipeline, context, ranks = grid_of(flags)
    sizes = {"tensor-model-parallel-size": tensor, "pipeline-model-parallel-size": pipeline,
             "context-parallel-size": context, "ulysses-degree-in-cp": 2,
             "num-layers-per-virtual-pipeline-stage": 1}
    for name, value in sizes.items():
        if name in flags:
            flags[name] = [str(value)]
    if "num-layer-list" in flags:
        flags["num-layer-list"] = ["1,3" if pipeline == 2 else str(config["num_hidden_layers"])]
    return ranks


def training(flags, config):
    """Changes the flags of a training command; returns its number of ranks."""
    set_sizes(flags, config)
    ranks = set_grid(flags, config)
    one = "num-layers-per-virtual-pipeline-stage" in flags
    values = {"micro-batch-size": 1 if one else min(2, number(flags, "micro-batch-size")),
              "global-batch-size": ROWS, "train-iters": 2, "lr-decay-iters": 2,
              "lr-warmup-iters": 1, "save-interval": 2, "eval-interval": 2,
              "eval-iters": min(1, number(flags, "eval-iters", 0)), "log-interval": 1,
              "recompute-num-layers": 1, "recompute-activation-function-num-layers": 1,
              "rollout-batch-size": ROWS, "max-new-tokens": 8, "max-length": 64}
    for name, value in values.items():
        if name in flags:
            flags[name] = [str(value)]
    return ranks


def inference(flags, config):
    set_sizes(flags, config)
    set_grid(flags, config)
    if "max-new-tokens" in flags:
        flags["max-new-tokens"] = ["8"]
    return 2  # torchrun starts one process for a program that reads any division


def conversion(flags):
    for name in ("target-tensor-parallel-size", "target-pipeline-parallel-size"):
        if name in flags:
            flags[name] = [str(min(2, number(flags, name)))]
    if "num-layers-per-virtual-pipeline-stage" in flags:
        flags["num-layers-per-virtual-pipeline-stage"] = ["1"]
    if "num-layer-list" in flags:
        flags["num-layer-list"] = ["1,3"]
