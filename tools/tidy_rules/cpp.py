"""As much of C++ as the checks need: blanking comments and literals, finding functions, includes and enums."""

import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*$")
_ENUM = re.compile(r"\benum\s+(?:class\s+|struct\s+)?(\w+)\s*:\s*([\w:]+)\s*\{([^}]*)\}")
_LEAD = re.compile(r"(?:\s+|(?:public|private|protected)\s*:)*")
_FIXED_WIDTH = re.compile(r"^(?:std::)?u?int(?:8|16|32|64)_t$")


def blank(text):
    """Comments become spaces; string and character literals keep their quotes and lose what is inside."""

    def replace(match):
        token = match.group(0)
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        quote = token[-1]
        inside = re.sub(r"[^\n]", " ", token[1:-1])
        return quote + inside + quote

    # An include's name is no literal.
    kept = {match.start(): match.group(0) for match in _INCLUDE.finditer(text)}
    blanked = _TOKEN.sub(replace, text)
    for start, line in kept.items():
        if blanked[start:start + len(line)].lstrip().startswith("#"):
            blanked = blanked[:start] + line + blanked[start + len(line):]
    return blanked


def includes(code):
    """(position, name, quoted) of each include in blanked code."""
    return [(match.start(), match.group(2), match.group(1) == '"') for match in _INCLUDE.finditer(code)]


def _matching_braces(code):
    match, stack = {}, []
    for found in re.finditer(r"[{}]", code):
        if found.group() == "{":
            stack.append(found.start())
        elif stack:
            match[stack.pop()] = found.start()
    return match


def functions(code):
    """(name, first line, line count) of each function body at namespace or class scope in blanked code.

    A lambda counts with the function around it. Preprocessor branches that open a brace twice confuse it; write
    the branches around whole functions.
    """
    without_macros = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                            flags=re.MULTILINE)
    match = _matching_braces(without_macros)
    found = []
    _scan(without_macros, 0, len(without_macros), match, found)
    return found


def _scan(code, start, end, match, found):
    at = header = start
    while at < end:
        char = code[at]
        if char == ";":
            header = at + 1
        elif char == "{" and at in match:
            close = match[at]
            head = code[header:at]
            after = code[close + 1:end].lstrip()[:1]
            if _SCOPE.search(re.sub(r"<[^<>]*>", "", head)) and "(" not in head.split("{")[-1].split(":")[0]:
                if not re.search(r"\benum\b", head):
                    _scan(code, at + 1, close, match, found)
                header = close + 1
            elif after in (",", "{", ")") or (after == ";" and "(" not in head):
                pass  # a braced initializer: of a member in a constructor's list, or of a variable
            else:
                if "(" in head:
                    begin = header + _LEAD.match(head).end()
                    found.append((_name(head), code.count("\n", 0, begin) + 1, code.count("\n", begin, close) + 1))
                header = close + 1
            at = close
        at += 1


def _name(head):
    if test := re.search(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|BENCHMARK_F)\s*\(([^)]*)\)", head):
        return ".".join(part.strip() for part in test.group(1).split(",")[:2])
    called = re.search(r"([~\w:]*(?:operator\s*[^\s\w(]+)?)\s*\(", head)
    return called.group(1) or "lambda" if called else "?"


def fixed_width_enums(code):
    """(position, name, enumerators) of each enum whose underlying type has a fixed width in blanked code."""
    for match in _ENUM.finditer(code):
        if _FIXED_WIDTH.match(match.group(2)):
            yield match.start(), match.group(1), [part.strip() for part in match.group(3).split(",") if part.strip()]
