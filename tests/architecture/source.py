"""Reads C++ sources as the lints need them: without comments and literals, cut into functions and statements. The tree is formatted
by clang-format, which keeps these rules of thumb simple."""
import os
import re

FOLDERS = ("engine", "transports", "actors", "algorithms", "launch", "tests", "benchmarks")


def files(root, folders=FOLDERS):
    """Paths of headers and sources below `root`, sorted, relative to it."""
    out = []
    for folder in folders:
        for place, _, names in os.walk(os.path.join(root, folder)):
            out += [os.path.relpath(os.path.join(place, n), root) for n in names if n.endswith((".h", ".cpp"))]
    return sorted(out)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


LITERALS = re.compile(
    r'R"(?P<mark>[^(\s]*)\((?:.|\n)*?\)(?P=mark)"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # not the separators of 1'000
    r"|//[^\n]*|/\*(?:.|\n)*?\*/"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.M,
)


def code(text):
    """The text with comments, literals and preprocessor lines blanked; lines keep their numbers."""

    def blank(match):
        found = match.group(0)
        newlines = "\n" * found.count("\n")
        return '""' + newlines if found[0] in "\"'R" else newlines

    return LITERALS.sub(blank, text)


def without_angles(text):
    """Template arguments removed, so that their commas do not count."""
    before = None
    while before != text:
        before = text
        text = re.sub(r"([\w>])<[^<>;{}]*>", r"\1", text)
    return text


def top_level(text):
    """The parts between the commas that stand in no bracket."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return parts + [text[begin:]]


class Function:
    def __init__(self, name, line, last, parameters):
        self.name, self.line, self.last, self.parameters = name, line, last, parameters
        self.lines = last - line + 1


SIGNATURE = re.compile(r"(operator\s*(?:\(\)|[^\s\w(]+|\w+)|~?[A-Za-z_]\w*)\s*\(")
NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas", "noexcept", "static_assert", "requires"}


def signature(head):
    """(name, parameters) of the function that `head` (a declaration, or what stands before a body) declares; None: it is no function."""
    head = without_angles(head)
    for match in SIGNATURE.finditer(head):
        if match.group(1) in NOT_FUNCTIONS:
            continue
        before = head[: match.start()]
        if "=" in re.sub(r"operator\s*\S*|[=!<>]=", "", before) or before.count("(") != before.count(")"):
            return None
        depth, end = 0, None
        for i in range(match.end() - 1, len(head)):
            depth += {"(": 1, ")": -1}.get(head[i], 0)
            if depth == 0:
                end = i
                break
        if end is None:
            return None
        inside = head[match.end() : end].strip()
        return match.group(1), 0 if inside in ("", "void") else len(top_level(inside)), head[end + 1 :].strip()
    return None


def walk(text):
    """Yields ("function", Function) for definitions, ("declaration", Function) for declarations, and ("statement", line, text) for every
    statement of a function's body, nested braces left out."""
    blank = code(text)
    stack = []  # (kind, header, line of the header, buffer, line of the buffer, depth of parentheses)
    buffer, begin, parens, line = [], 1, 0, 1
    for at, c in enumerate(blank):
        if c == "\n":
            line += 1
        inside = any(kind in ("function", "block") for kind, *_ in stack)
        if c in "([":
            parens += 1
        elif c in ")]":
            parens -= 1
        if c == "{":
            head = "".join(buffer).strip()
            found = None
            if not inside and parens == 0 and not re.match(r"(inline )?namespace\b|extern\b", head):
                if not re.match(r"(?:template\b.*?>\s*(?:requires[^{]*)?)?(?:typedef )?(?:class|struct|union|enum)\b[^()]*(?:\([^()]*\)[^()]*)?$", without_angles(head), re.S):
                    found = signature(head)
                    if found and re.search(r"(?:^|[^:]):(?!:)(?:[^{]*,)?\s*[\w:]+$", found[2]) and not found[2].endswith(("const", "override", "noexcept", "final", "try")):
                        found = None  # a member's initialiser: its braces are no body
                        kind = "init"
                        stack.append((kind, head, begin, buffer, begin, parens))
                        buffer, parens = [], 0
                        continue
            if found:
                kind = "function"
            elif inside:
                kind = "block"
            elif re.match(r"(inline )?namespace\b|extern\b", head) or re.search(r"\b(class|struct|union|enum)\b", head):
                kind = "scope"
            else:
                kind = "init"
            stack.append((kind, head, begin, buffer, begin, parens))
            buffer, parens = [], 0
            begin = line
            continue
        if c == "}":
            if not stack:
                buffer = []
                continue
            kind, head, started, outer, outer_begin, parens = stack.pop()
            if kind == "function":
                name, parameters, _ = signature(head)
                yield "function", Function(name, started, line, parameters)
                buffer = []
            elif kind == "scope":
                buffer = []
            elif kind == "block":
                stripped = "".join(outer).strip()
                control = parens == 0 and (stripped == "" or re.match(r"(if|else|for|while|switch|do|try|catch|case|default)\b", stripped))
                buffer, begin = ([], line) if control else (outer + ["{}"], outer_begin)
            else:
                buffer, begin = outer + ["{}"], outer_begin
            continue
        if c == ";" and parens == 0:
            statement = "".join(buffer).strip()
            if inside:
                yield "statement", begin, statement
            elif statement:
                found = signature(statement)
                if found and not statement.startswith(("using", "friend", "typedef", "static_assert")):
                    yield "declaration", Function(found[0], begin, line, found[1])
            buffer = []
            continue
        if not buffer and c.isspace():
            continue
        if not buffer:
            begin = line
        buffer.append(c)
        if not inside and parens == 0 and c == ":" and re.fullmatch(r"(public|private|protected)\s*:", "".join(buffer).strip()):
            buffer = []


CONTROL = re.compile(r"^\s*(?:else\b|do\b|case\b[^:]*:|default\s*:)\s*")


def is_comma_chain(statement):
    """Whether several expressions are joined by commas: `a = 1, b = 2`, `x.set(1), y.set(2)`, `return into = x, into`."""
    text = without_angles(statement)
    while True:
        match = CONTROL.match(text)
        if match:
            text = text[match.end() :]
            continue
        match = re.match(r"\s*(?:if|for|while|switch)\s*(?:constexpr\s*)?\(", text)
        if not match:
            break
        depth = 0
        for i in range(match.end() - 1, len(text)):
            depth += {"(": 1, ")": -1}.get(text[i], 0)
            if depth == 0:
                break
        text = text[i + 1 :]
    parts = top_level(text)
    if len(parts) < 2:
        return False
    first = parts[0].strip()
    if first.startswith(("return ", "co_return ", "throw ")):
        return True
    if re.match(r"(const|constexpr|static|auto|unsigned|thread_local|using|template|struct|class|enum|mutable|volatile|extern)\b", first):
        return False
    return not re.match(r"(?:[\w:]+(?:\s+const)?[\s&*]+)+[*&]*\w+\s*(?:$|=[^=]|\(|\{|\[)", first)
