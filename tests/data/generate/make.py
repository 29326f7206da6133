"""Makes rules.json and beams.json: what transformers' rules and beam searches give. Run with the folder of stories260k and an output folder.

rules.json: random logits of a vocabulary of 24, and for each setting what transformers' logits processors leave: the ids that may
follow and their probabilities. beams.json: sequences and scores of beam searches over stories260k in float64.
"""
import json
import os
import sys
from types import SimpleNamespace

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.generation.utils import GenerationMixin

VOCABULARY, END = 24, [2, 5]
LIMIT = 12  # tokens of prompt and output
PROMPT, OUTPUT = [7, 3, 9, 3], [11, 7, 3]

RULES = [
    {"sequence_bias": [[[4], 2.5], [[3, 6], 4.0], [[7, 3, 8], -3.0], [[9, 10], 5.0]]},
    {"bad_words_ids": [[1], [3, 9], [7, 3, 11], [8, 12], [2], [5]]},
    {"suppress_tokens": [0, 4, 9], "repetition_penalty": 1.4},
    {"begin_suppress_tokens": [0, 4, 9]},
    {"encoder_repetition_penalty": 1.7},
    {"encoder_repetition_penalty": 1.3, "repetition_penalty": 1.2},
    {"encoder_no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 3},
    {"exponential_decay_length_penalty": [1, 1.5]},
    {"exponential_decay_length_penalty": [1, 0.5], "min_new_tokens": 5},
    {"min_new_tokens": 5},
    {"min_length": 9},
    {"forced_eos_token_id": 5},
    {"forced_bos_token_id": 6},
    {"eta_cutoff": 0.05},
    {"eta_cutoff": 0.3, "temperature": 1.4},
    {"epsilon_cutoff": 0.06},
    {"top_h": 0.4},
    {"top_h": 0.9, "temperature": 0.7, "top_k": 7},
    {"typical_p": 0.4, "temperature": 1.2},
    {"temperature": 0.7, "top_k": 9, "top_p": 0.8, "min_p": 0.05, "typical_p": 0.9, "epsilon_cutoff": 0.02, "eta_cutoff": 0.04},
    {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "bad_words_ids": [[4], [3, 1]], "top_p": 0.7, "sequence_bias": [[[6], 1.0]]},
]
# Contexts: the middle of an output, its first token, the second token of all, the last one that there is room for.
CONTEXTS = [(PROMPT, OUTPUT), (PROMPT, []), ([1], []), (PROMPT, OUTPUT + [1, 13, 1, 2 + 12])]

BEAMS = [
    {"num_beams": 3, "early_stopping": True, "num_return_sequences": 2},
    {"num_beams": 3, "early_stopping": "never", "num_return_sequences": 3},
    {"num_beams": 3, "early_stopping": "never", "length_penalty": -0.5, "num_return_sequences": 3},
    {"num_beams": 4, "length_penalty": 0.0, "num_return_sequences": 4},
    {"num_beams": 4, "early_stopping": "never", "length_penalty": 1.7, "num_return_sequences": 4},
    {"num_beams": 3, "no_repeat_ngram_size": 2, "renormalize_logits": True},
    {"num_beams": 3, "no_repeat_ngram_size": 2, "renormalize_logits": False},
    {"num_beams": 3, "min_new_tokens": 9, "suppress_tokens": [261, 267], "num_return_sequences": 2},
    {"num_beams": 4, "bad_words_ids": [[263], [401, 396]], "repetition_penalty": 1.2, "num_return_sequences": 2},
    {"num_beams": 3, "forced_eos_token_id": 426, "num_return_sequences": 3},
    {"num_beams": 4, "stop_strings": ["happ", " park"], "num_return_sequences": 4},
    {"num_beams": 2, "stop_strings": ["a"], "early_stopping": True, "num_return_sequences": 2},
    {"num_beams": 3, "eos_token_id": [426, 433, 432], "num_return_sequences": 3},
]
PROMPTS = ["The dog was very happy because he"]


def rule(settings, prompt, output, logits):
    config = GenerationConfig(do_sample=True, eos_token_id=END, max_length=LIMIT, **settings)
    config._eos_token_tensor = torch.tensor(END)
    model = SimpleNamespace(
        config=SimpleNamespace(is_encoder_decoder=False), _merge_criteria_processor_list=GenerationMixin._merge_criteria_processor_list)
    model._merge_criteria_processor_list = lambda default, custom: default
    chain = GenerationMixin._get_logits_processor(
        model, config, input_ids_seq_length=len(prompt), encoder_input_ids=torch.tensor([prompt]), logits_processor=[], device="cpu")
    scores = chain(torch.tensor([prompt + output]), logits[None].clone())[0]
    p = scores.softmax(-1)
    kept = [i for i in range(VOCABULARY) if scores[i] > -float("inf")]
    return {"prompt": prompt, "output": output, "kept": kept, "probabilities": [p[i].item() for i in kept]}


def make_rules():
    torch.manual_seed(5)
    logits = (2 * torch.randn(VOCABULARY, dtype=torch.float64))
    rows = []
    for settings in RULES:
        rows.append({"settings": settings, "rows": [rule(settings, p, o, logits) for p, o in CONTEXTS]})
    return {"logits": logits.tolist(), "ends": END, "limit": LIMIT, "rules": rows}


def make_beams(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    entries = []
    for settings in BEAMS:
        rows = []
        for prompt in PROMPTS:
            ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                out = model.generate(ids, **{"eos_token_id": 426, **settings}, max_new_tokens=16, do_sample=False, pad_token_id=0,
                                     return_dict_in_generate=True, output_scores=True, tokenizer=tokenizer)
            sequences = [row[len(ids[0]):].tolist() for row in out.sequences]
            for row in sequences:
                while row and row[-1] == 0:
                    row.pop()
            rows.append({"ids": ids[0].tolist(), "outputs": sequences, "scores": out.sequences_scores.tolist()})
        entries.append({"settings": {"eos_token_id": 426, **settings}, "rows": rows})
    return {"max_new_tokens": 16, "beams": entries}


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    for name, made in (("rules.json", make_rules()), ("beams.json", make_beams(folder))):
        with open(os.path.join(out, name), "w") as file:
            file.write(json.dumps(made, separators=(",", ":")).replace('{"settings"', '\n{"settings"') + "\n")
