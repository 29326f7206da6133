"""Model folders and rows for compare.py: the same files for TRL and for troupe."""
import json
import os
import re
import shutil

import torch
import transformers
from peft import LoraConfig, get_peft_model

BATCH, MAX_LENGTH, ROWS = 4, 160, 26
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
PLAIN = ("{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")
ENDED = ("{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + (eos_token if m['role'] == 'assistant' else '\\n') }}{% endfor %}"
         "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")


def copied(source, folder, template, **changes):
    """A copy of a model or tokenizer folder with a chat template and other settings of its tokenizer."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    path = os.path.join(folder, "tokenizer_config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config.update({"chat_template": template} if template else {}, **changes)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return folder


def random_model(folder, tokens):
    """Writes a model of random weights over a vocabulary of so many tokens into a folder with a tokenizer."""
    torch.manual_seed(0)
    config = transformers.Qwen3Config(vocab_size=tokens, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, head_dim=16, max_position_embeddings=512, tie_word_embeddings=True,
                                      initializer_range=0.1, bos_token_id=None, eos_token_id=2, pad_token_id=0)
    transformers.Qwen3ForCausalLM(config).float().save_pretrained(folder)
    return folder


def folders(data, root):
    """Folder of each template. Those of stories260k are of the class LlamaTokenizer, whose ids transformers 5 builds otherwise; `special` has the
    ChatML tokens in its vocabulary, as Qwen has, and `text` has rows without a template."""
    stories = os.path.join(data, "models", "stories260k", "hf")
    at = lambda name: os.path.join(root, name)
    return {
        "plain": copied(stories, at("plain"), PLAIN, pad_token="<unk>"),
        "ended": copied(stories, at("ended"), ENDED, pad_token="<unk>"),
        "chatml": copied(stories, at("chatml"), CHATML, pad_token="<unk>"),
        "special": random_model(copied(os.path.join(data, "tokenizers", "minimind"), at("special"), CHATML), 6400),
        "text": copied(stories, at("text"), None, pad_token="<unk>"),
    }


def scored(folder):
    """A reward model of the weights of a folder: the score head is drawn here, so that both begin with the same."""
    torch.manual_seed(1)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1, dtype=torch.float32)
    model.score.weight.data.normal_(0, 0.2)
    model.save_pretrained(folder + "-scored")
    for name in os.listdir(folder):
        if name.startswith(("tokenizer", "special")):
            shutil.copy(os.path.join(folder, name), folder + "-scored")
    return folder + "-scored"


def adapted(folder):
    """An adapter of random weights, so that it differs from its base from the start."""
    torch.manual_seed(2)
    base = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(base, config).save_pretrained(folder + "-adapter")
    return folder + "-adapter"


def turns(path):
    """Of each of hh_rlhf's rows the last question and its two answers."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            parts = [re.split(r"\n\n(?:Human|Assistant): ?", row[key]) for key in ("chosen", "rejected")]
            if len(parts[0]) == len(parts[1]) and parts[0][-2] == parts[1][-2]:
                yield parts[0][-2].strip(), parts[0][-1].strip(), parts[1][-1].strip()


def questions(data, count=ROWS):
    """Questions with two answers each: short ones, then two whose answers are truncated. Some answers begin with a digit, before which tokens
    merge otherwise than before a letter."""
    path = os.path.join(data, "datasets", "pairwise", "hh_rlhf_harmless_base_test_400.jsonl")
    found = [turn for turn in turns(path) if all(turn) and len(turn[0]) < 60]
    short = [turn for turn in found if len(turn[1]) < 80 and len(turn[2]) < 80 and turn[1] != turn[2]]
    long = [turn for turn in found if len(turn[1]) > 300 and len(turn[2]) > 300]
    rows = short[:ROWS - 2] + long[:2]
    rows = rows[:count]
    assert len(rows) == count, "hh_rlhf has fewer rows of these lengths"
    return [(question, f"{i} {good}" if i % 5 == 0 else good, bad) for i, (question, good, bad) in enumerate(rows)]


def rows_of(data, kind, chat, count=ROWS):
    """Rows of a kind (completions, messages, unpaired, pairs or whole pairs), conversations with `chat`."""
    if chat:
        asked = lambda text: [{"role": "user", "content": text}]
        said = lambda text: [{"role": "assistant", "content": text}]
    else:
        asked, said = lambda text: f"Human: {text}\n\nAssistant:", lambda text: " " + text
    rows = []
    for i, (question, good, bad) in enumerate(questions(data, count)):
        if kind == "pairs":
            rows.append({"prompt": asked(question), "chosen": said(good), "rejected": said(bad)})
        elif kind == "whole pairs":
            rows.append({"chosen": asked(question) + said(good), "rejected": asked(question) + said(bad)})
        elif kind == "unpaired":
            rows.append({"prompt": asked(question), "completion": said(bad if i % 2 else good), "label": i % 2 == 0})
        elif kind == "messages":
            rows.append({"messages": asked(question) + said(good)} if chat else {"text": asked(question) + said(good)})
        else:
            rows.append({"prompt": asked(question), "completion": said(good)})
    return rows


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
