"""Loads every model folder that troupe saved under ROOT with transformers, and compares its logits with troupe's.

    python3 transformers_interop.py ROOT

ROOT/NAME/ is a model folder, with troupe.safetensors beside the weights: "tokens" [T], and "logits", which are [T, V] of a language model,
[T, C] of a token classifier and, of a sequence classifier, [T, C] too (transformers gives the last row). Exit status: 0 equal, 1 not, 77 where
torch or transformers is not there.
"""
import os
import sys

try:
    import torch
    import transformers
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoModelForTokenClassification
except ImportError as missing:
    print(f"not compared with transformers: {missing}")
    sys.exit(77)

TOLERANCE = 2e-5  # of the largest logit: float32 here, float64 there

KINDS = (("ForSequenceClassification", AutoModelForSequenceClassification), ("ForTokenClassification", AutoModelForTokenClassification))


def loader_of(config):
    for suffix, loader in KINDS:
        if config.architectures[0].endswith(suffix):
            return loader
    return AutoModelForCausalLM


def compare(folder):
    config = AutoConfig.from_pretrained(folder)
    loader = loader_of(config)
    if type(config) not in loader._model_mapping:
        return f"transformers has no {config.architectures[0]}", True
    model, info = loader.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    wrong = [f"{what}: {sorted(info[what])[:3]}" for what in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[what]]
    if wrong:
        return "; ".join(wrong), False
    ours = load_file(os.path.join(folder, "troupe.safetensors"))
    with torch.no_grad():
        theirs = model.eval()(ours["tokens"].long()[None]).logits[0]
    found = ours["logits"].double()
    if loader is AutoModelForSequenceClassification:
        found = found[-1]
    if found.shape != theirs.shape:
        return f"shapes {tuple(found.shape)} and {tuple(theirs.shape)}", False
    worst = ((found - theirs).abs().max() / theirs.abs().max()).item()
    return f"{type(model).__name__}: largest difference {worst:.2g} of the largest logit", worst <= TOLERANCE


def main():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    for name in sorted(os.listdir(sys.argv[1])):
        what, good = compare(os.path.join(sys.argv[1], name))
        print(f"{name}: {'' if good else 'FAILED: '}{what}", flush=True)
        failed += not good
    sys.exit(1 if failed else 0)


main()
