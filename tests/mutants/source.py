"""C++ source text in, possible mutants out.

This is no parser of C++: it finds function bodies, statements and operators in code as clang-format leaves it. By
mistake it may make a mutant that does not compile; then another one is drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<string>(?:u8|[LuU])?R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.]|'(?=\w))*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark_>::|->|\+\+|--|&&|\|\||<<=|>>=|<=>|==|!=|<=|>=|[-+*/%&|^]=|<<|>>|\.\.\.|.)
    """,
    re.X | re.S | re.M,
)
_PAIRS = {
    "logic": (("&&", "||"),),
    "equality": (("==", "!="),),
    "boundary": (("<", "<="), (">", ">=")),
    "sign": (("+", "-"), ("+=", "-=")),
}
_SWAPPED = {one: other for pairs in _PAIRS.values() for a, b in pairs for one, other in ((a, b), (b, a))}
_OPERATOR_NAMES = {text: name for name, pairs in _PAIRS.items() for pair in pairs for text in pair}
_SCOPES = {"namespace", "struct", "class", "union", "extern"}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
# A statement that begins with one of these is no expression.
_NO_EXPRESSION = set(
    "return break continue goto throw using typedef static_assert template const auto constexpr static struct class "
    "enum union unsigned bool int double float char void thread_local volatile alignas asm extern".split()
)
# Checks of our own mistakes: a correct program behaves alike without them.
_CHECKS = re.compile(r"[A-Z]\w*_CHECK\w*$|assert$|static_assert$")
# Deleting these changes speed and nothing else.
_ONLY_SPEED = {"reserve", "shrink_to_fit"}
_LARGEST_OFF_BY_ONE = 9  # larger constants are sizes and limits, of which no test promises the exact value


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Mutant:
    """A change of `text[start:end]` in one file to `replacement`."""

    file: str  # from the root of the tree
    line: int  # of the start, from 1
    operator: str
    start: int
    end: int
    replacement: str
    before: str  # the lines it touches, white space collapsed
    after: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


def tokens_of(text: str) -> List[Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "mark":  # the delimiter of a raw string is the last group that matched in it
            kind = "string"
        if kind != "skip":
            found.append(Token("op" if kind == "mark_" else kind, match.group(), match.start(), match.end()))
    return found


def mutants_of(file: str, text: str) -> List[Mutant]:
    """Every mutant of a file, in the order of the text."""
    changes = sorted(set(_Reader(text).changes()))
    return [_mutant(file, text, *change) for change in changes]


def _mutant(file: str, text: str, start: int, end: int, replacement: str, operator: str) -> Mutant:
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:start] + replacement + text[end:last]
    line = text.count("\n", 0, start) + 1
    return Mutant(file, line, operator, start, end, replacement, collapse(before), collapse(after))


_Change = Tuple[int, int, str, str]  # start, end, replacement, operator


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._match = self._match_brackets()
        self._changes: List[_Change] = []

    def changes(self) -> List[_Change]:
        self._read_declarations(0, len(self._tokens))
        return self._changes

    def _match_brackets(self) -> Dict[int, int]:
        match: Dict[int, int] = {}
        stack: List[int] = []
        for place, token in enumerate(self._tokens):
            if token.kind != "op":
                continue
            if token.text in _OPEN:
                stack.append(place)
            elif token.text in _CLOSE and stack:
                match[stack.pop()] = place
        for place in stack:  # never closed: up to the end
            match[place] = len(self._tokens) - 1
        return match

    def _is(self, place: int, *texts: str) -> bool:
        return 0 <= place < len(self._tokens) and self._tokens[place].text in texts

    # Namespaces and classes: finds the functions in them.
    def _read_declarations(self, place: int, end: int) -> None:
        head = place
        while place < end:
            text = self._tokens[place].text
            if text in (";", "}"):
                head = place + 1
            elif text in ("public", "private", "protected") and self._is(place + 1, ":"):
                place, head = place + 1, place + 2
            elif text in ("(", "["):
                place = self._match[place]
            elif text == "{":
                close = self._match[place]
                kind, returns = self._kind_of_braces(head, place)
                if kind == "declarations":
                    self._read_declarations(place + 1, close)
                elif kind == "body":
                    self._read_body(place + 1, close, returns)
                place = close
                if kind in ("declarations", "body"):
                    head = place + 1
            place += 1

    def _kind_of_braces(self, head: int, brace: int) -> Tuple[str, str]:
        """The kind of the braces that open outside functions; of a body also what is returned: void, bool or other."""
        outer = list(self._outermost(head, brace))
        texts = [self._tokens[place].text for place in outer]
        if "enum" in texts:
            return "data", ""
        parameters = next((at for at, text in enumerate(texts) if text == "("), None)
        before = texts if parameters is None else texts[:parameters]
        if parameters is None:
            if "=" not in before and not _SCOPES.isdisjoint(before):
                return "declarations", ""
            return "data", ""
        if "=" in before and "operator" not in before:
            return "data", ""
        if ":" in texts[parameters:] and self._tokens[brace - 1].kind == "name":
            if self._tokens[brace - 1].text not in ("const", "noexcept", "override", "final"):
                return "data", ""  # a member in the list of initialisers
        while before[-2:-1] == ["::"]:  # void A::B::f
            del before[-3:-1]
        return "body", before[-2] if before[-2:-1] in (["void"], ["bool"]) else "other"

    def _outermost(self, begin: int, end: int) -> Iterator[int]:
        """Places of tokens that are in no brackets; of brackets the first token."""
        place = begin
        while place < end:
            yield place
            if self._tokens[place].text in _OPEN:
                place = self._match[place]
            place += 1

    # The inside of a function.
    def _read_body(self, begin: int, end: int, returns: str) -> None:
        self._read_block(begin, end, returns, end)

    def _read_block(self, place: int, end: int, returns: str, last: int) -> None:
        while place < end:
            text = self._tokens[place].text
            if text == "{":
                self._read_block(place + 1, self._match[place], returns, last)
                place = self._match[place] + 1
            elif text in ("if", "while", "for", "switch"):
                place = self._read_control(place)
            elif text in ("else", "do", "try", ";"):
                place += 1
            elif text in ("case", "default"):
                while place < end and not self._is(place, ":"):
                    place += 1
                place += 1
            else:
                place = self._read_statement(place, end, returns, last)

    def _read_control(self, place: int) -> int:
        """Reads `if (...)` and returns where the statement under it begins."""
        opening = place + 1
        while not self._is(opening, "("):
            if opening + 1 >= len(self._tokens):
                return len(self._tokens)
            opening += 1
        close = self._match[opening]
        self._read_expression(opening + 1, close)
        if self._tokens[place].text in ("if", "while") and not self._is(place + 1, "constexpr"):
            begin = opening + 1
            for at in self._outermost(opening + 1, close):
                if self._is(at, ";"):
                    begin = at + 1
            if not any(self._is(at, "=") for at in self._outermost(begin, close)):
                self._negate(begin, close)
        return close + 1

    def _negate(self, begin: int, end: int) -> None:
        """A condition or a value that is true or false, tokens begin..end-1."""
        if end <= begin or (end == begin + 1 and self._tokens[begin].text in ("true", "false")):
            return
        start, stop = self._tokens[begin].start, self._tokens[end - 1].end
        outer = [self._tokens[at].text for at in self._outermost(begin, end)]
        if outer[0] == "!" and not any(text in _SWAPPED or text == "?" for text in outer):
            self._changes.append((start, stop, self._text[start + 1 : stop], "condition"))
        else:
            self._changes.append((start, stop, f"!({self._text[start:stop]})", "condition"))

    def _read_statement(self, place: int, end: int, returns: str, last: int) -> int:
        stop = end
        for at in self._outermost(place, end):
            if self._is(at, ";"):
                stop = at
                break
        first = self._tokens[place]
        if _CHECKS.search(first.text):
            return stop + 1
        self._read_expression(place, stop)
        if first.text == "return" and returns == "bool" and stop > place + 1:
            self._negate(place + 1, stop)
        if stop < end and self._is_expression(place, stop):
            start, finish = first.start, self._tokens[stop].end
            self._changes.append((start, finish, "{}", "delete"))
            if returns == "void" and stop + 1 != last:
                self._changes.append((start, finish, "return;", "return"))
        return stop + 1

    def _is_expression(self, begin: int, end: int) -> bool:
        """Whether begin..end-1 is a call, an assignment or the like, and no declaration."""
        first = self._tokens[begin]
        if first.text in _NO_EXPRESSION or any(self._is(at, *_ONLY_SPEED) for at in self._outermost(begin, end)):
            return False
        if first.text in ("++", "--", "*", "(", "delete", "this"):
            return True
        if first.kind != "name":
            return False
        place = begin + 1
        while place < end:
            text = self._tokens[place].text
            if text in ("::", ".", "->"):
                place += 2
            elif text in ("(", "["):
                place = self._match[place] + 1
            elif text == "<" and not self._spaced(place):
                place = self._after_angles(place, end)
            else:
                return text in _ASSIGNMENTS or text in ("++", "--", "<<")
        return self._is(end - 1, ")")

    def _after_angles(self, place: int, end: int) -> int:
        depth = 0
        while place < end:
            depth += {"<": 1, ">": -1, ">>": -2}.get(self._tokens[place].text, 0)
            place += 1
            if depth <= 0:
                break
        return place

    def _spaced(self, place: int) -> bool:
        """A binary operator has white space on both sides; a template's brackets and a reference have not."""
        token = self._tokens[place]
        around = self._text[token.start - 1 : token.start] + self._text[token.end : token.end + 1]
        return len(around) == 2 and around.isspace()

    def _read_expression(self, begin: int, end: int) -> None:
        text_in_it = any(self._tokens[at].kind == "string" for at in range(begin, end))
        place = begin
        while place < end:
            token = self._tokens[place]
            if token.text == "{" and self._is_lambda(place):
                self._read_body(place + 1, self._match[place], "unknown")
                place = self._match[place]
            elif token.kind == "op":
                self._change_operator(place, text_in_it)
            elif token.kind == "number":
                self._change_number(place)
            elif token.text in ("true", "false"):
                self._add(token, "false" if token.text == "true" else "true", "constant")
            elif token.text in ("min", "max") and self._is(place - 1, "::") and self._is(place - 2, "std"):
                if self._is(place + 1, "(", "<"):
                    self._add(token, "max" if token.text == "min" else "min", "min-max")
            elif token.kind == "name" and self._is(place + 1, "("):
                self._swap_arguments(place)
            place += 1

    def _is_lambda(self, brace: int) -> bool:
        before = brace - 1
        while self._is(before, "mutable", "noexcept"):
            before -= 1
        for back in range(before, max(before - 8, 0), -1):  # -> Type
            if self._is(back, ";", "{", "}", "(", ")"):
                break
            if self._is(back, "->"):
                before = back - 1
                break
        if self._is(before, "]"):
            return True
        if not self._is(before, ")"):
            return False
        opening = next((at for at, close in self._match.items() if close == before), -1)
        return self._is(opening - 1, "]")

    def _change_operator(self, place: int, text_in_it: bool) -> None:
        token = self._tokens[place]
        other = _SWAPPED.get(token.text)
        if other is None or self._is(place - 1, "operator"):
            return
        sign = token.text in ("+", "-", "+=", "-=")
        if self._spaced(place):
            if not (sign and text_in_it):  # texts are joined by +, and nothing else can be done with them
                self._add(token, other, _OPERATOR_NAMES[token.text])
        elif token.text == "-" and place + 1 < len(self._tokens) and self._tokens[place + 1].kind in ("name", "number"):
            self._add(token, "", "sign")

    def _change_number(self, place: int) -> None:
        token = self._tokens[place]
        match = re.fullmatch(r"(\d)([uUlLzZ]*)", token.text)
        if match is None or int(match[1]) > _LARGEST_OFF_BY_ONE:
            return
        number = int(match[1])
        self._add(token, f"{number + 1}{match[2]}", "constant")
        if number > 0:
            self._add(token, f"{number - 1}{match[2]}", "constant")

    def _swap_arguments(self, place: int) -> None:
        if self._tokens[place].text in ("min", "max", "swap"):
            return
        close = self._match[place + 1]
        arguments: List[List[int]] = [[]]
        for at in self._outermost(place + 2, close):
            if self._is(at, ","):
                arguments.append([])
            else:
                arguments[-1].append(at)
        for left, right in zip(arguments, arguments[1:]):
            if not (self._is_simple(left) and self._is_simple(right)):
                continue
            one, other = self._spelled(left), self._spelled(right)
            if one != other:
                start, end = self._tokens[left[0]].start, self._tokens[right[-1]].end
                self._changes.append((start, end, f"{other}, {one}", "arguments"))
                return

    def _is_simple(self, argument: Sequence[int]) -> bool:
        """A variable or a member: a, a.b, a->b."""
        names = all(self._tokens[at].kind == "name" or self._is(at, ".", "->") for at in argument)
        return bool(argument) and names and len(argument) % 2 == 1

    def _spelled(self, argument: Sequence[int]) -> str:
        return self._text[self._tokens[argument[0]].start : self._tokens[argument[-1]].end]

    def _add(self, token: Token, replacement: str, operator: str) -> None:
        self._changes.append((token.start, token.end, replacement, operator))


def line_choices(mutants: Sequence[Mutant]) -> Dict[Tuple[str, int], List[Mutant]]:
    """The mutants of each line, so that a line with many has no more weight than another."""
    lines: Dict[Tuple[str, int], List[Mutant]] = {}
    for mutant in mutants:
        lines.setdefault((mutant.file, mutant.line), []).append(mutant)
    return lines


def collapse(text: str) -> str:
    return " ".join(text.split())
