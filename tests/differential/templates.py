"""The template language and the bundled chat templates against transformers (and so jinja2)."""
import json
import os
import tempfile
import warnings

from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

import compare

VALUES = ["none", "true", "false", "0", "1", "-1", "2", "7", "1.5", "-0.25", "1e20", "''", "'a'", "'Abc dEf'", "' a b  c '", "'x,y,z'", "'\u00e9\u4e2d\U0001F600'",
          "'<b>&\"'", "'line one\\nline two\\n\\nend'", "('<i>'|safe)", "('a&b'|e)", "'abc' * 5", "missing", "missing.x", "[]", "[1, 2, 3]", "['b', 'A', 'c']",
          "[[1, 'x'], [2, 'y']]", "(1, 'a')", "{}", "{'a': 1, 'b': [2, 3]}", "[{'a': 2, 'k': 'x'}, {'a': 1, 'k': 'y'}]", "range(4)", "range(5, 0, -2)",
          "messages", "messages[0]", "messages[0].content", "tools", "add_generation_prompt", "bos_token", "n.v", "x", "y", "loop.index", "f('q')"]
FILTERS = ["abs", "attr('x')", "batch(2)", "batch(2, 'z')", "capitalize", "center(9)", "count", "d('none')", "default('e', true)", "dictsort", "e", "escape",
           "filesizeformat", "first", "float", "float(2.5)", "forceescape", "format('a', 2)", "groupby('a')", "indent", "indent(2, true)", "int", "int(3)", "items", "join",
           "join(', ')", "join('|', attribute='k')", "last", "length", "list", "lower", "map('upper')", "map(attribute='a')", "max", "min", "reject('odd')",
           "rejectattr('a')", "replace('a', 'b')", "replace('b', '<', 1)", "reverse", "round", "round(1, 'floor')", "safe", "select", "select('string')",
           "selectattr('a', 'equalto', 1)", "slice(2)", "sort", "sort(reverse=true)", "sort(attribute='a')", "string", "striptags", "sum", "sum(attribute='a')",
           "title", "tojson", "tojson(indent=2)", "trim", "trim('a ')", "truncate(5)", "truncate(4, true, '')", "unique", "upper", "urlencode", "wordcount", "xmlattr",
           "nope"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "callable", "odd", "even",
         "divisibleby 2", "eq 1", "ne 'a'", "lt 2", "ge 1", "in [1, 'a']", "sameas true", "lower", "upper", "true", "false", "filter", "test", "escaped", "nope"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "strip('a ')", "lstrip()", "rstrip()", "split()", "split(none, 1)", "split(',')",
           "split('b', 1)", "rsplit(none, 1)", "rsplit(',', 1)", "splitlines()", "splitlines(true)", "partition('b')", "rpartition(' ')", "startswith('a')",
           "endswith(('c', ' '))", "find('b')", "rfind('c')", "index('a')", "count('a')", "replace('a', 'xx')", "join(['p', 'q'])", "center(9, '*')", "ljust(6)",
           "rjust(6, '.')", "zfill(5)", "isdigit()", "isalpha()", "isupper()", "islower()", "isspace()", "istitle()", "format(1, a=2)", "items()", "keys()", "values()",
           "get('a')", "get('q', 3)", "index(2)", "count(1)", "expandtabs(4)", "removeprefix('a')", "removesuffix('c')", "casefold()", "nope()", "append(1)"]
SLICED = ["'Abc dEf'", "'\u00e9\u4e2d\U0001F600'", "[1, 2, 3]", "(1, 'a')", "range(4)", "messages", "x", "'abc'|list", "('<i>'|safe)"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def expression(rng, depth=2):
    kind = rng.randrange(9) if depth else 0
    inner = lambda: expression(rng, depth - 1)
    if kind in (0, 1):
        return rng.choice(VALUES)
    if kind in (2, 3):
        return f"({inner()})|{rng.choice(FILTERS)}"
    if kind == 4:
        return f"({inner()}) {rng.choice(OPERATORS)} ({inner()})"
    if kind == 5:
        return f"({inner()}) is {rng.choice(['', 'not '])}{rng.choice(TESTS)}"
    if kind == 6:
        return f"({inner()}).{rng.choice(METHODS)}"
    if kind == 7 and rng.random() < 0.5:  # jinja2 folds slices of other constants to undefined values
        return f"({rng.choice(SLICED)})[{rng.choice(['1:', ':2', '::-1', '1:3', '-2:'])}]"
    if kind == 7:
        return f"({inner()})[{rng.choice(['0', '-1', chr(39) + 'a' + chr(39), '5'])}]"
    return f"({inner()} if {inner()} else {inner()})"


def statement(rng, depth=2):
    kind = rng.randrange(13) if depth else rng.randrange(4)
    body = lambda: "".join(statement(rng, depth - 1) for _ in range(rng.randrange(1, 3)))
    sign = lambda: rng.choice(["", "", "-", "+"])
    if kind == 0:
        return rng.choice(["text ", "\n", "  \n  ", "a{", "}}", "# x", "\u00e9 "])
    if kind in (1, 2):
        return "{{" + rng.choice(["", "-"]) + " " + expression(rng) + " " + rng.choice(["", "-"]) + "}}"
    if kind == 3:
        return f"{{%{sign()} set {rng.choice(['x', 'y', 'n.v'])} = {expression(rng)} {sign()}%}}"
    if kind in (4, 5):
        other = "{% else %}" + body() if rng.random() < 0.4 else ""
        return f"{{%{sign()} if {expression(rng)} %}}{body()}{other}{{% endif {sign()}%}}"
    if kind in (6, 7):
        condition = f" if {expression(rng, 1)}" if rng.random() < 0.2 else ""
        leave = rng.choice(["", "", "{% break %}", "{% continue %}"])
        other = "{% else %}" + body() if rng.random() < 0.2 else ""
        return f"{{% for x in {expression(rng)}{condition} {sign()}%}}{{{{ x }}}}{{{{ loop.{rng.choice(['index', 'last', 'length', 'revindex', 'previtem'])} }}}}{leave}{body()}{other}{{% endfor %}}"
    if kind == 8:
        return f"{{% set x %}}{body()}{{% endset %}}"
    if kind == 9:
        return f"{{% set y | {rng.choice(FILTERS)} %}}{body()}{{% endset %}}"
    if kind == 10:
        return f"{{% filter {rng.choice(FILTERS)} %}}{body()}{{% endfilter %}}"
    if kind == 11:
        return f"{{% with x = {expression(rng)} %}}{body()}{{% endwith %}}"
    return f"{{% call f({expression(rng, 1)}) %}}{body()}{{% endcall %}}"


warnings.filterwarnings("ignore")  # of constant expressions that raise
MESSAGES = [{"role": "user", "content": "Hello <b>you</b>"}, {"role": "assistant", "content": "Hi", "tool_calls": [{"name": "t", "arguments": {"a": 1}}]}]
TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}]


def program_text(rng):
    start = "{% set n = namespace(v=1) %}{% macro f(a, b='c') %}[{{ a }}{{ b }}{{ caller() if caller else '' }}]{% endmacro %}"
    end = rng.choice([""] * 20 + ["{#", "a {#-", "{% raw %}", "{% raw %}{{ x }}{% endraw %}"])
    return start + "".join(statement(rng) for _ in range(rng.randrange(1, 5))) + end


def programs(program, count, rng, report):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "template.jinja")
        for _ in range(count):
            source = program_text(rng)
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            try:
                expected = _compile_jinja_template(source).render(messages=MESSAGES, tools=TOOLS, documents=None, add_generation_prompt=True, bos_token="<s>")
            except Exception:  # whatever jinja2 raises is an error here
                expected = None
            line = {"messages": MESSAGES, "tools": TOOLS, "add_generation_prompt": True, "bos_token": "<s>"}
            found = compare.answers(program, ["render", "--template", path], [line])[0].get("text")
            report.compare("program", source, expected, found)


def conversation(rng):
    words = lambda: compare.random_texts(rng, 1)[0]
    messages = [{"role": "system", "content": words()}] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": words()})
        answer = {"role": "assistant", "content": rng.choice([words(), f"<think>\n{words()}\n</think>\n\n{words()}"])}
        for name in ("reasoning_content", "thinking", "reasoning"):
            if rng.random() < 0.15:
                answer[name] = rng.choice([words(), None])
        if rng.random() < 0.3:
            arguments = {"a": rng.choice([1, 2.5, None, True, words(), [1, "x"], {"k": words()}])}
            answer["tool_calls"] = [{"type": "function", "id": "abcdefghi", "function": {"name": "t", "arguments": arguments}}]
            messages += [answer, {"role": "tool", "name": "t", "tool_call_id": "abcdefghi", "content": words()}]
        else:
            messages.append(answer)
    if rng.random() < 0.3:
        messages.pop()
    return messages


def bundled_templates():
    folder = os.path.join(compare.DATA, "chat_templates")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            yield name, file.read(), os.path.join(folder, name)


def renders(program, count, rng, report):
    all_templates = list(bundled_templates())
    for name, source, path in all_templates:
        lines, expected = [], []
        for _ in range(max(1, count // len(all_templates))):
            line = {"messages": conversation(rng), "tools": TOOLS if rng.random() < 0.4 else None, "add_generation_prompt": rng.random() < 0.5,
                    "bos_token": "<s>", "eos_token": "</s>", "now": "2025-01-15T12:00:00", "kwargs": rng.choice([{}, {"enable_thinking": False}])}
            lines.append(line)
            try:
                text, _ = render_jinja_template([line["messages"]], tools=line["tools"], chat_template=source, bos_token="<s>", eos_token="</s>",
                                                add_generation_prompt=line["add_generation_prompt"], **line["kwargs"])
                expected.append(text[0])
            except Exception:  # the templates raise for conversations that they do not have
                expected.append(None)
        for line, text, found in zip(lines, expected, compare.answers(program, ["render", "--template", path], lines)):
            report.compare(name, json.dumps(line), text, found.get("text"))
