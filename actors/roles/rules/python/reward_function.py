"""Calls a reward function of TRL, verl or OpenRLHF for the reward rule `python`.

Usage: PYTHON reward_function.py OPTIONS, with a JSON object: file, function, signature (trl, verl,
openrlhf), arguments (further keyword arguments of the function), path (folders of modules). Reads
requests of docs/rewards.md, one a line, and answers each in one line. Needs the standard library
only; what the function prints goes to standard error.
"""

import asyncio
import importlib.util
import inspect
import json
import math
import numbers
import os
import re
import sys
import traceback

MAX_PARTS = 64


class Problem(Exception):
    """What the user has to change; its text is the answer's error."""


def location(error, file):
    """Where in the user's file an exception was raised, or in the last file if not there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.realpath(frame.filename) == file] or frames
    if not own:
        return ""
    return f" ({os.path.basename(own[-1].filename)}, line {own[-1].lineno}, in {own[-1].name})"


def last_line(error):
    return traceback.format_exception_only(type(error), error)[-1].strip()


def load_module(file):
    sys.path.append(os.path.dirname(file))
    spec = importlib.util.spec_from_file_location("reward_function_file", file)
    if spec is None or spec.loader is None:
        raise Problem(f"{file} is no Python file: its name should end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # also SystemExit, which would end the program unseen
        traceback.print_exc()
        advice = ""
        if isinstance(error, ImportError):
            advice = (
                f"; modules are searched for in the environment of {sys.executable}: `python` of "
                "the rule chooses another one, and `read` lists further folders, such as the "
                "file's own"
            )
        raise Problem(
            f"{file} cannot be imported: {last_line(error)}{location(error, file)}{advice}"
        ) from None
    return module


def load_function(file, name):
    if not os.path.isfile(file):
        raise Problem(f"no file {file} can be read in the sandbox; it must be readable by all users")
    found = module = load_module(file)
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found
    known = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    what = "is not a function" if found is not None else "is not there"
    raise Problem(
        f"{file}: {name} {what}; its functions are {', '.join(sorted(known)) or 'none'}: write "
        f"function: {os.path.basename(file)}:NAME with one of them"
    )


class Caller:
    """Calls the function with those of the available arguments that it takes."""

    def __init__(self, function, arguments, positional=()):
        self.function = function
        self.arguments = arguments
        self.positional = positional  # names by which the arguments are known if it has others
        try:
            self.parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            self.parameters = None

    def takes(self, name):
        return any(each.name == name for each in self.parameters or [])

    def required(self):
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
                 inspect.Parameter.POSITIONAL_ONLY)
        return [each.name for each in self.parameters or []
                if each.default is inspect.Parameter.empty and each.kind in kinds]

    def __call__(self, available, columns, row):
        """`columns` are arguments like `available`; `row` is for messages."""
        merged = {**columns, **available, **self.arguments}
        if self.parameters is None:
            return self.finished(self.function(**merged))
        given = [each for each in self.parameters if each.kind in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)]
        first = []
        if self.positional and not all(self.takes(name) for name in self.positional):
            first = [merged.pop(name) for name in self.positional][:max(len(given), 1)]
        taken = [each.name for each in given[:len(first)]]
        missing = [name for name in self.required() if name not in merged and name not in taken]
        if missing:
            raise Problem(
                f"the function takes {', '.join(missing)}, which is no column of the rows (they "
                f"have {', '.join(sorted(row)) or 'none'}); rename a column, or give it a value "
                "under `arguments` of the rule")
        any_name = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in self.parameters)
        keywords = {name: value for name, value in merged.items()
                    if name not in taken and (any_name or self.takes(name))}
        for name in self.arguments:
            if name not in keywords:
                raise Problem(f"the function takes no argument {name}, which `arguments` of the "
                              "rule has")
        return self.finished(self.function(*first, **keywords))

    @staticmethod
    def finished(result):
        return asyncio.run(result) if inspect.iscoroutine(result) else result


def plain(value):
    """Tensors and arrays as lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def number(value, what):
    """A reward as a float, or None."""
    value = plain(value)
    while isinstance(value, (list, tuple)) and len(value) == 1:
        value = plain(value[0])
    if value is None:
        return None
    if isinstance(value, numbers.Real):
        if math.isfinite(value):
            return float(value)
        raise Problem(f"{what} is {value}: expected a finite number, or None for no reward")
    raise Problem(f"{what} is {str(type(value).__name__)} {str(value)[:80]!r}: expected a number")


def part_name(name):
    return re.sub(r"[^A-Za-z0-9_./ -]", "_", str(name))[:64]


def part_value(value):
    """A number for the metrics, or None if it is not one."""
    value = plain(value)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = plain(value[0])
    usable = isinstance(value, numbers.Real) and math.isfinite(value) and abs(value) <= 1e6
    return float(value) if usable else None


def rewards_of(result, count, what):
    """The rewards of a function that answers for a list."""
    result = plain(result)
    if isinstance(result, numbers.Real) and count == 1:
        result = [result]
    if not isinstance(result, (list, tuple)):
        raise Problem(f"{what} is {type(result).__name__}: expected a list of {count} numbers")
    if len(result) != count:
        raise Problem(
            f"{what} has {len(result)} items for {count} completions: expected one for each")
    return [number(each, f"{what}[{i}]") for i, each in enumerate(result)]


def add_parts(parts, name, value):
    """A list of one number for each completion, or one number for all."""
    value, name = plain(value), part_name(name)
    each = value if isinstance(value, (list, tuple)) else [value] * len(parts)
    if not name or len(each) != len(parts):
        return
    for into, one in zip(parts, each):
        one = part_value(one)
        if one is not None and len(into) < MAX_PARTS:
            into[name] = one


class Trl:
    """f(prompts, completions, completion_ids, **columns) -> list of numbers or None."""

    def __init__(self, function, arguments):
        self.call = Caller(function, arguments)

    def __call__(self, prompt, texts, request):
        chat = isinstance(request.get("messages"), list)
        count, parts = len(texts), [{} for _ in texts]
        row = request.get("row") or {}
        columns = {key: [value] * count for key, value in row.items()
                   if key not in ("prompt", "completion", "completion_ids")}
        available = {
            "prompts": [request["messages"] if chat else prompt] * count,
            "completions": [[{"role": "assistant", "content": text}] if chat else text
                            for text in texts],
            "completion_ids": request.get("completion_ids"),
            "log_extra": lambda name, values: None,
            "log_metric": lambda name, value: add_parts(parts, name, value),
        }
        return rewards_of(self.call(available, columns, row), count, "the function's result"), parts


class OpenRlhf:
    """f(queries, prompts, labels, **kwargs) -> numbers, or a dict with rewards."""

    def __init__(self, function, arguments):
        self.call = Caller(function, arguments, ("queries", "prompts", "labels"))

    def __call__(self, prompt, texts, request):
        count, parts = len(texts), [{} for _ in texts]
        available = {"queries": [prompt + text for text in texts], "prompts": [prompt] * count,
                     "labels": [request.get("answer")] * count}
        result = self.call(available, {}, request.get("row") or {})
        if not isinstance(result, dict):
            return rewards_of(result, count, "the function's result"), parts
        if "rewards" not in result:
            raise Problem(f"the function's result has no \"rewards\", only {', '.join(result)}")
        if "scores" in result:
            add_parts(parts, "scores", result["scores"])
        for name, value in (result.get("extra_logs") or {}).items():
            add_parts(parts, name, value)
        return rewards_of(result["rewards"], count, '"rewards"'), parts


class Verl:
    """f(data_source, solution_str, ground_truth, extra_info) -> a number or a dict with score."""

    def __init__(self, function, arguments):
        self.call = Caller(function, arguments)
        self.batch = self.call.takes("solution_strs")

    def available(self, request):
        row = request.get("row") or {}
        info = row.get("extra_info")
        info = dict(info) if isinstance(info, dict) else {}
        out = {"ground_truth": request.get("answer"), "extra_info": info}
        if "data_source" in row:
            out["data_source"] = row["data_source"]
        return out

    @staticmethod
    def read(result, parts):
        if isinstance(result, dict):
            if "score" not in result:
                raise Problem(f"the function's result has no \"score\", only {', '.join(result)}")
            for name, value in result.items():
                if name != "score":
                    add_parts([parts], name, value)
            result = result["score"]
        elif isinstance(result, (list, tuple)) and result:
            result = result[0]
        return number(result, "the score")

    def __call__(self, prompt, texts, request):
        row, parts = request.get("row") or {}, [{} for _ in texts]
        if self.batch:
            plural = {"data_source": "data_sources", "ground_truth": "ground_truths",
                      "extra_info": "extra_infos"}
            lists = {plural[name]: [value] * len(texts)
                     for name, value in self.available(request).items()}
            results = plain(self.call({**lists, "solution_strs": texts}, {}, row))
            if not isinstance(results, (list, tuple)) or len(results) != len(texts):
                raise Problem(f"the function's result is not a list of {len(texts)} scores")
        else:
            results = [self.call({**self.available(request), "solution_str": text}, {}, row)
                       for text in texts]
        return [self.read(result, into) for result, into in zip(results, parts)], parts


SIGNATURES = {"trl": Trl, "verl": Verl, "openrlhf": OpenRlhf}
MARKS = {"queries": "openrlhf", "solution_str": "verl", "solution_strs": "verl",
         "completions": "trl", "completion_ids": "trl"}


def prepared(options):
    """The function behind its signature."""
    sys.path.extend(each for each in options.get("path", []) if each not in sys.path)
    function = load_function(options["file"], options["function"])
    caller = SIGNATURES[options["signature"]](function, options.get("arguments") or {})
    for name in caller.call.required():
        other = MARKS.get(name, options["signature"])
        if other != options["signature"]:
            raise Problem(f"{options['function']} takes {name}: write signature: {other}")
    return caller


def answer(caller, request, file):
    """The answer to a request, without its id."""
    grouped = "completions" in request
    texts = request["completions"] if grouped else [request["completion"]]
    if not texts:
        return {"rewards": []}
    try:
        rewards, parts = caller(request.get("prompt") or "", texts, request)
    except Problem:
        raise
    except BaseException as error:  # also SystemExit, which would end the program unseen
        traceback.print_exc()
        raise Problem(f"the function raised {last_line(error)}{location(error, file)}") from None
    if grouped:
        return {"rewards": rewards, "parts": parts}
    return {"reward": rewards[0], "parts": parts[0]}


def main():
    options = json.loads(sys.argv[1])
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # prints of the function are no answers
    caller, problem = None, ""
    try:
        caller = prepared(options)
    except Problem as found:
        problem = str(found)
    for line in requests:
        request = json.loads(line)
        try:
            if caller is None:
                raise Problem(problem)
            result = answer(caller, request, os.path.realpath(options["file"]))
        except Problem as found:
            result = {"error": str(found)}
        answers.write(json.dumps({"id": request["id"], **result}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
