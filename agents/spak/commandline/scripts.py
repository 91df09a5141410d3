"""Little languages on a command line: whether a text of sed, awk, perl, jq, SQL or JavaScript only computes.

Each function takes the text of a program and gives None when it can do no more than read what the command
was given and print, or a short reason why it may do more (run a command, open another file, loop without
end) or is not understood. What is not understood is never called harmless. `judged` notes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spak.commandline.judge import Judge
from spak.commandline.table import Grammar
from spak.commandline.words import Arg

_SED_PLAIN = "pdDPnNgGhHxFz="
_SED_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+)")
_SED_TAIL = re.compile(r"[ \t]*[^;}\s]*")
"""A label: blanks end it, and what follows is the next command."""
_STANDARD = ("/dev/stdout", "/dev/stderr", "/dev/stdin")


def sed(text: str) -> str | None:
    """Why a sed script does more than edit the text that it is given."""
    at, end = 0, len(text)
    while at < end:
        if text[at] in " \t\n;{}":
            at += 1
            continue
        if text[at] == "#":
            stop = text.find("\n", at)  # a backslash does not carry a comment on
            at = end if stop < 0 else stop
            continue
        moved = _addresses(text, at)
        if moved is None or moved >= end:
            return "a sed script that is not understood"
        at = moved
        sign = text[at]
        at += 1
        if sign == "{":
            continue
        if sign in "sy":
            done = _substitution(text, at, sign)
            if isinstance(done, str):
                return done
            at = done
        elif sign in "aic":
            at = _line_end(text, at)
        elif sign in "bTt:":
            found = _SED_TAIL.match(text, at)
            assert found is not None
            at = found.end()
        elif sign in "qQlL":
            while at < end and text[at] in " 0123456789":
                at += 1
        elif sign in "rRwW":
            stop = _line_end(text, at)
            if text[at:stop].strip() not in _STANDARD:
                return f"sed's command {sign} opens a file"
            at = stop
        elif sign == "e":
            return "sed's command e runs a command"
        elif sign not in _SED_PLAIN:
            return f"sed's command {sign!a} is not known"
    return None


def _line_end(text: str, at: int) -> int:
    """The end of the line, lines that end in a backslash taken together."""
    while True:
        stop = text.find("\n", at)
        if stop < 0:
            return len(text)
        line = text[at:stop]
        if (len(line) - len(line.rstrip("\\"))) % 2 == 0:  # an escaped backslash carries nothing on
            return stop
        at = stop + 1


def _addresses(text: str, at: int) -> int | None:
    """Where the addresses before a sed command end; None when one is not understood."""
    while at < len(text):
        sign = text[at]
        if sign in " \t,!":
            at += 1
        elif sign in "/\\":
            delimiter = "/" if sign == "/" else text[at + 1 : at + 2]
            after = _delimited(text, at + (1 if sign == "/" else 2), delimiter)
            if after is None:
                return None
            at = after
            while at < len(text) and text[at] in "IM":
                at += 1
        else:
            found = _SED_ADDRESS.match(text, at)
            if found is None:
                return at
            at = found.end()
    return at


def _delimited(text: str, at: int, delimiter: str) -> int | None:
    if not delimiter or delimiter in "\\\n":
        return None
    inside = False
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 2
            continue
        if sign == delimiter:
            # in a bracket expression some readers end here and some do not: refuse to choose
            return None if inside and "]" in text[at : at + 3] and delimiter != "/" else at + 1
        inside = sign == "[" or (inside and sign != "]")
        at += 1
    return None


def _substitution(text: str, at: int, sign: str) -> int | str:
    delimiter = text[at : at + 1]
    middle = _delimited(text, at + 1, delimiter)
    after = None if middle is None else _delimited(text, middle, delimiter)
    if after is None:
        return "a sed substitution that is not understood"
    if sign == "s":
        while after < len(text) and text[after] in "gpiImM0123456789":
            after += 1
        if after < len(text) and text[after] in "ew":
            return f"sed's flag {text[after]} of s runs a command or writes a file"
    if after < len(text) and text[after] not in " \t;}\n":
        return "a sed substitution that is not understood"
    return after


_AWK_TEXT = re.compile(r'"(?:\\[\s\S]|[^"\\\n])*"')
_AWK_PATTERN = re.compile(r"/(?:\\.|\[\^?\]?[^\]/\n]*\]|[^/\\\n\[])+/")
_AWK_BAD = (
    (re.compile(r"\bsystem\b|\bsystem\s*\("), "awk's system runs a command"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "awk's | runs a command"),
    (re.compile(r"\bgetline\b"), "awk's getline opens another file or command"),
    (re.compile(r"\bprintf?\b[^;}\n]*>"), "awk's print with > writes a file"),
    (re.compile(r"@"), "awk's @ loads another file or calls by name"),
    (re.compile(r"\bENVIRON\b"), "awk's ENVIRON shows the environment"),
    (re.compile(r"\b(ARGV|ARGC)\b"), "awk's ARGV opens other files"),
    (re.compile(r"\b(SYMTAB|FUNCTAB)\b"), "awk's SYMTAB reaches every variable"),
    (re.compile(r"\bwhile\s*\(\s*(\d+|!0|\"\"|\d+\s*[=!<>]+\s*\d+)\s*\)"), "an awk loop without end"),
    (re.compile(r"\bfor\s*\([^;)]*;\s*\d*\s*;"), "an awk loop without end"),
)
_AWK_COMPARED = re.compile(r"\bFILENAME\s*[!=]=\s*ARGV\[\d+\]|\bARGV\[\d+\]\s*[!=]=\s*FILENAME\b")
_AWK_VALUE = re.compile(r"[\w)\]\"][ \t]*\Z")
"""After a value, `/` divides."""
_AWK_NO_VALUE = re.compile(r"\b(print|printf|return|else|do|in|case|getline|delete|exit)[ \t]*\Z")
_AWK_EITHER = re.compile(r"(\+\+|--|\blength)[ \t]*\Z")
"""After these, awks take `/` as the place has it."""
_AWK_WIDE = re.compile(r"%[-+ #0]*(\d{5,}|\*)|\.\d{5,}")


def awk(text: str) -> str | None:
    """Why an awk program does more than read its input and print."""
    bare = _awk_bare(text)
    if bare is None:
        return "an awk program that is not understood"
    if _AWK_WIDE.search(text):
        return "an awk format of great width"
    bare = _AWK_COMPARED.sub("1", bare)
    bare = re.sub(r"(,|&&|\|\||[?:])[ \t]*\n", r"\1 ", bare)  # where a statement goes on
    for pattern, reason in _AWK_BAD:
        if pattern.search(bare):
            return reason
    return None


def _awk_bare(text: str) -> str | None:
    """The program without its strings, patterns and comments; None where it can be cut in two ways."""
    at, bare = 0, ""
    while at < len(text):
        sign = text[at]
        if text.startswith("\\\n", at):
            bare += " "
            at += 2
            continue
        slash = _slash(bare) if sign == "/" else "divides"
        if slash == "either":
            return None
        if sign == '"':
            found = _AWK_TEXT.match(text, at)
        elif slash == "pattern":
            found = _AWK_PATTERN.match(text, at)
        elif sign == "#":
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        else:
            bare += sign
            at += 1
            continue
        if found is None:
            return None
        at = found.end()
        bare += '""'
    return bare


def _slash(before: str) -> str:
    """What `/` is after this code: it divides, begins a pattern, or either, as the place has it."""
    behind_test = before.rstrip(" \t").endswith(")") and re.search(r"\b(if|while|for)\b", before)
    if behind_test or _AWK_EITHER.search(before):
        return "either"
    value = _AWK_VALUE.search(before) and not _AWK_NO_VALUE.search(before)
    return "divides" if value else "pattern"


_PLAIN_RE = r"(?:[^/\\`@(${]|\\[^\x00]|\((?!\?\??\{)|\{\d*,?\d*\}|\$(?=[/)|]))*"
_PERL = re.compile(
    rf"\s*(?:s/{_PLAIN_RE}/(?:[^/\\`@${{]|\\[^\x00]|\$\d)*/[gimsx]*|tr/[^/\\`]*/[^/\\`]*/[dcs]*|"
    rf"(?:print(?: \$_)?(?: if| unless)? )?m?/{_PLAIN_RE}/[imsx]*(?: and print)?|"
    rf"print(?: \$\.)?(?: if| unless) m?/{_PLAIN_RE}/[imsx]*|print if \$\. *[<>=]=? *\d+)\s*;?\s*\Z"
)


def perl(text: str) -> str | None:
    """Why a perl text is more than one plain substitution or condition."""
    return None if _PERL.match(text) else "perl code that is not one plain substitution or condition"


_JS = re.compile(
    r"(?:console\.log\()?(?:require\('\./(?!\.)[\w-]+\.json'\)(?:\.[a-z]+)*|process\.versions?(?:\.\w+)?|"
    r"[\d\s+*/%.-]+|'[^'\\]*'|\"[^\"\\]*\")\)?;?\Z"
)
"""JavaScript that prints: a number, a text, a value of a JSON file of the folder, a version."""


def javascript(text: str) -> str | None:
    """Why JavaScript does more than print a value."""
    return None if _JS.match(text) else "JavaScript that does more than print a value"


_JQ = re.compile(
    r"(?<![.\w\"])(env|import|include|input_filename|getpath_|load\w*|strenv|envsubst|eval|system|modulemeta|"
    r"get_search_list)\b|\$(\s|#[^\n]*\n)*ENV\b"
)


def jq(text: str) -> str | None:
    """Why a filter of jq or yq reads more than its input."""
    return "it may print the environment or load other files" if _JQ.search(text) else None


_SQL_SHOWS = re.compile(r"\.(tables|schema|indexes|databases|dbinfo)(\s+\w+)?\s*\Z")
_SQL_BAD = re.compile(
    r"\n\s*\.|(?i:\b(attach|load_extension|readfile|writefile|edit|fts3_tokenizer|fsdir|zipfile|recursive)\b)|"
    r"(?is:\bvacuum\b.*\binto\b)|(?i:\busing\s+(?!fts\d|rtree)[\w\"\[`])|"
    r"(?i:\b(generate_series|zeroblob|randomblob)\s*\([^)]*(\d{7}|e\d))"
)


def sql(text: str) -> str | None:
    """Why a statement of SQLite, or a dot command of its shell, reaches other files or programs."""
    if (text.lstrip().startswith(".") and not _SQL_SHOWS.match(text.strip())) or _SQL_BAD.search(text):
        return "a statement or dot command that may reach other files or programs"
    return None


READERS: dict[str, Callable[[str], str | None]] = {
    "sed": sed,
    "awk": awk,
    "perl": perl,
    "javascript": javascript,
    "jq": jq,
    "sql": sql,
}


def judged(judge: Judge, grammar: Grammar, language: str, item: Arg) -> None:
    """Note what a program that is given as a word does beyond the deed of its command."""
    if language == "activate":
        _activate(judge, grammar, item)
        return
    if item.text is None:
        kind = "not_understood" if item.mild or item.texts else "unknown_word"
        judge.deed(kind, grammar.name, "a program that is not known before the line runs")
        return
    why = READERS[language](item.text)
    if why:
        judge.deed("executes", grammar.name, why)


def _activate(judge: Judge, grammar: Grammar, item: Arg) -> None:
    """`source .venv/bin/activate` chooses the project's own programs; any other text is code."""
    if item.text and item.literal and re.search(r"(?:^|/)\.?v?env[\w.-]*/bin/activate\Z", item.text):
        judge.path("runs", item)
        judge.deed("builds", grammar.name)
    else:
        judge.deed("executes", grammar.name, f"{grammar.name} is not for the command line")
