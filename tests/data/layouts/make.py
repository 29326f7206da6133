"""Writes NAME.expected.json beside each NAME.jsonl: the texts of its rows with their roles, and whether they are trained on.

    python3 make.py        needs trl, llamafactory and verl (pip install --no-deps), transformers and datasets; no torch

layouts.json names for each file the tool whose functions read it. TRL: extract_prompt, unpair_preference_dataset and transformers'
chat templates with generation marks; LLaMA-Factory: its converters of data sets; verl: RLHFDataset._build_messages. "by hand": no
released tool reads the layout; such a file is written by its reader and left as it is.
"""
import ast
import functools
import importlib.metadata
import importlib.util
import json
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
# Each message between marks, with the answer of the assistant as what generation writes.
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}\x01{{ loop.index0 }}\x02{% endgeneration %}"
    "{% else %}\x01{{ loop.index0 }}\x02{% endif %}{% endfor %}"
)


def part(role, text, trained):
    return {"role": role, "text": text, "trained": trained}


def call_of(function):
    arguments = function["arguments"]
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return {"type": "function", "function": {"name": function["name"], "arguments": arguments}}


def message_part(message, trained):
    out = part(message["role"], message.get("content") or "", trained)
    if message.get("tool_calls"):
        out["tool_calls"] = [call_of(call["function"]) for call in message["tool_calls"]]
    return out


def read_by_trl(row, algorithm):
    import datasets
    from transformers.utils.chat_template_utils import render_jinja_template
    from trl import data_utils

    def parts_of(prompt, completion):
        """Of text or messages; the assistant's messages behind the prompt are trained on (completion_only_loss, assistant_only_loss)."""
        if isinstance(completion, str):
            return [part("prompt", prompt, False), part("completion", completion, True)]
        messages = list(prompt) + list(completion)
        (text,), (spans,) = render_jinja_template([messages], chat_template=TEMPLATE, return_assistant_tokens_mask=True)
        marked = {int(text[a:b].strip("\x01\x02")) for a, b in spans}
        return [message_part(m, i in marked and i >= len(prompt)) for i, m in enumerate(messages)]

    if algorithm == "prm":
        steps = [{**part("step", step, True), "label": int(label)} for step, label in zip(row["completions"], row["labels"])]
        return {"sequences": [{"parts": [part("prompt", row["prompt"], False)] + steps}]}
    if "input_ids" in row:
        labels = row.get("labels") or [i if m else -100 for i, m in zip(row["input_ids"], row["completion_mask"])]
        return {"sequences": [{"ids": row["input_ids"], "trained": [label != -100 for label in labels]}]}
    if algorithm == "grpo":
        prompt = row["prompt"]
        parts = [part("prompt", prompt, False)] if isinstance(prompt, str) else [message_part(m, False) for m in prompt]
        out = {"sequences": [{"name": "prompt", "parts": parts}]}
        return {**out, "answer": row["solution"]} if "solution" in row else out
    if algorithm == "dpo":
        row = data_utils.maybe_extract_prompt(row)
        return {"sequences": [{"name": name, "parts": parts_of(row["prompt"], row[name])} for name in ("chosen", "rejected")]}
    if algorithm == "kto":
        rows = data_utils.maybe_unpair_preference_dataset(datasets.Dataset.from_list([row])).to_list()
        return {
            "sequences": [
                {"name": "desirable" if each["label"] else "undesirable", "parts": parts_of(each["prompt"], each["completion"])}
                for each in rows
            ]
        }
    if "text" in row:
        return {"sequences": [{"parts": [part("text", row["text"], True)]}]}
    parts = parts_of([], row["messages"]) if "messages" in row else parts_of(row["prompt"], row["completion"])
    out = {"sequences": [{"parts": parts}]}
    return {**out, "tools": row["tools"]} if row.get("tools") else out


@functools.cache
def llamafactory_modules():
    """Its converters and DatasetAttr, without the modules that need torch."""
    root = os.path.dirname(importlib.util.find_spec("llamafactory").origin)
    for name in ("llamafactory", "llamafactory.data", "llamafactory.extras"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(root, *name.split(".")[1:])]
        sys.modules[name] = package
    misc = types.ModuleType("llamafactory.extras.misc")
    misc.use_modelscope = misc.use_openmind = lambda: False
    constants = types.ModuleType("llamafactory.extras.constants")
    constants.DATA_CONFIG, constants.RUNNING_LOG = "dataset_info.json", "running_log.txt"
    sys.modules.update({misc.__name__: misc, constants.__name__: constants})
    return importlib.import_module("llamafactory.data.converter"), importlib.import_module("llamafactory.data.parser")


def read_by_llamafactory(row, algorithm, dataset):
    converter, parser = llamafactory_modules()
    attr = parser.DatasetAttr("file", "rows")
    if dataset:
        attr.join(dataset)
    read = converter.get_dataset_converter(attr.formatting, attr, None)(row)

    def parts_of(messages, begin):
        out = [part("system", read["_system"], False)] if read["_system"] else []
        for i, message in enumerate(messages):
            role, text = message["role"], message["content"]
            if role == "function":
                calls = json.loads(text)
                calls = [call_of(call) for call in (calls if isinstance(calls, list) else [calls])]
                out.append({**part("assistant", "", i >= begin), "tool_calls": calls})
            else:
                role = "tool" if role == "observation" else role
                out.append(part(role, text, role == "assistant" and i >= begin))
        return out

    prompt, response = read["_prompt"], read["_response"]
    if algorithm == "dpo":
        names = ("chosen", "rejected")
        sequences = [{"name": name, "parts": parts_of(prompt + [answer], len(prompt))} for name, answer in zip(names, response)]
    elif algorithm == "kto":
        good = response[1]["content"] == ""
        answer = response[0] if good else response[1]
        sequences = [{"name": "desirable" if good else "undesirable", "parts": parts_of(prompt + [answer], len(prompt))}]
    else:
        sequences = [{"parts": parts_of(prompt + response, 0)}]  # mask_history is false: every answer is trained on
    tools = json.loads(read["_tools"]) if read["_tools"] else []
    return {"sequences": sequences, "tools": tools} if tools else {"sequences": sequences}


def read_by_verl(row, algorithm):
    folder = os.path.dirname(importlib.util.find_spec("verl").origin)
    with open(os.path.join(folder, "utils/dataset/rl_dataset.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    method = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_build_messages")
    names = {}
    exec(compile(ast.Module([method], []), "rl_dataset.py", "exec"), names)
    keys = types.SimpleNamespace(image_key="images", video_key="videos", audio_key="audios", processor=None)
    messages = names["_build_messages"](keys, row, "prompt")
    parts = [message_part(message, False) for message in messages]
    return {"sequences": [{"name": "prompt", "parts": parts}], "answer": row["reward_model"]["ground_truth"]}


READERS = {"trl": read_by_trl, "llamafactory": read_by_llamafactory, "verl": read_by_verl}


def rows_of(layout):
    path = os.path.join(HERE, layout.get("file", layout["name"] + ".jsonl"))
    if path.endswith(".parquet"):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pylist()
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    with open(os.path.join(HERE, "layouts.json"), encoding="utf-8") as file:
        layouts = json.load(file)
    for layout in layouts:
        peer = dict(layout["peer"])
        tool = peer.pop("tool")
        if tool == "by hand":
            continue
        rows = [READERS[tool](row, layout["algorithm"], **peer) for row in rows_of(layout)]
        version = f"{tool} {importlib.metadata.version(tool)}"
        if tool == "trl":
            version += f", transformers {importlib.metadata.version('transformers')}"
        with open(os.path.join(HERE, layout["name"] + ".expected.json"), "w", encoding="utf-8") as file:
            json.dump({"made_with": version, "rows": rows}, file, ensure_ascii=False, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
