"""Simple commands of a shell script, with what is known of their words before the script runs.

No shell is emulated: quoting, expansion of variables whose value is known, arrays, assignments, here
documents and comments are read; everything that only run time decides stays in the word as it is written,
and the word says so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vllm_phases.sources import positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.finding import Location
    from vllm_phases.sources.document import Node

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_BRACED = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:(?P<colon>:?)-(?P<default>.*))?", re.DOTALL)
_ARRAY = re.compile(r"(?P<name>[A-Za-z_]\w*)\[[@*]\]")
_REDIRECTION = re.compile(r"\d*(<<<|<<-?|[<>]&|>>|[<>]|&>>?)")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
_BLANK = re.compile(r"(?:[ \t]|\\\n|#[^\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")
_PLAIN = re.compile(r"[^ \t\n;&|()<>'\"\\$`]+")
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_OPENING = frozenset(("if", "while", "until", "for", "case", "select"))
_CLOSING = frozenset(("fi", "done", "esac"))
_KEYWORDS = frozenset((*_OPENING, *_CLOSING, "then", "else", "elif", "do", "in", "{", "}", "!", "time"))
_EXPORTS = frozenset(("export", "declare", "local", "readonly", "typeset"))


@dataclass(frozen=True)
class Word:
    """A word as the program gets it.

    known       False when a part of it is decided at run time; that part then stands as written
    undefined   variables in it that nothing here defines
    opaque      the whole word is one unquoted expansion, so it may become any number of words
    line, column  where it starts in its script, counted from 0
    node        the value of the document that holds it
    """

    text: str
    known: bool = True
    undefined: tuple[str, ...] = ()
    opaque: bool = False
    line: int = 0
    column: int = 0
    node: Node | None = field(default=None, repr=False)

    @property
    def location(self) -> Location | None:
        """The place of the word in its file."""
        if self.node is None:
            return None
        return self.node.document.location_in(self.node.path, self.line, self.column)

    def location_of(self, offset: int) -> Location | None:
        """The place of one of its characters; None where it cannot be known exactly."""
        if self.node is None:
            return None
        source = self.node.text().replace("\r\n", "\n")
        if source != self.text or self.node.document.kind == "command":
            starts = positions.line_starts(source)
            start = starts[self.line] + self.column if self.line < len(starts) else len(source)
            found = positions.of_word(source, start, self.text)
            if found is None:
                return None
            offset = found[offset]
        return self.node.document.location_of(self.node.path, offset)


@dataclass(frozen=True)
class Command:
    """A simple command: the assignments before it, its words, and the text of its here document.

    output      the file that it writes, where its output is redirected
    background  whether the script goes on beside it, outside of if, for and the like
    """

    words: tuple[Word, ...]
    assignments: Mapping[str, Word] = field(default_factory=dict)
    document: Word | None = None
    output: Word | None = None
    background: bool = False


@dataclass
class Variables:
    """What is known of variables: a text, None for one that exists without a known value, or a list.

    exports  those that the script exports, with the words of their values
    """

    values: dict[str, str | None] = field(default_factory=dict)
    lists: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    exports: dict[str, Word] = field(default_factory=dict)

    def copy(self) -> Variables:
        """Another set that may change by itself."""
        return Variables(dict(self.values), dict(self.lists), dict(self.exports))


def commands(script: str, variables: Variables, expands: bool = True) -> Iterator[Command]:
    """The simple commands of a script, in the order in which they stand.

    `variables` holds what the environment gives and takes what the script assigns; an assignment inside if,
    for and the like leaves the variable without a known value.

    expands=False only splits into words, and leaves every $ alone.
    """
    return _Script(script, variables, expands).commands()


@dataclass
class _Pieces:
    """The words that one written word becomes, while it is read."""

    words: list[Word]
    started: bool = False
    quoted: bool = False
    expanded: bool = False

    def add(self, text: str, known: bool = True, undefined: tuple[str, ...] = ()) -> None:
        last = self.words[-1]
        self.started = True
        self.words[-1] = replace(
            last,
            text=last.text + text,
            known=last.known and known,
            undefined=(*last.undefined, *undefined),
        )

    def split(self, words: list[str]) -> None:
        """An unquoted value: its words, of which the first and last join what stands beside them."""
        for index, word in enumerate(words):
            if index:
                self.words.append(Word("", line=self.words[-1].line, column=self.words[-1].column))
            self.add(word)

    def finished(self) -> list[Word]:
        if len(self.words) == 1 and not self.quoted:
            (word,) = self.words
            if not word.text:
                return []
            return [replace(word, opaque=self.expanded and not word.known and _lone(word.text))]
        return self.words


def _lone(text: str) -> bool:
    """Whether a word is one expansion and nothing else."""
    return text[0] in "$`" and (text[0] == "`" or text[-1] in ")}" or _NAME.fullmatch(text[1:]) is not None)


class _Script:
    def __init__(self, text: str, variables: Variables, expands: bool) -> None:
        self._text, self._at, self._variables = text.replace("\r\n", "\n"), 0, variables
        self._expands = expands
        self._lines = [0, *(match.end() for match in re.finditer("\n", self._text))]
        self._depth = 0
        self._pending: list[tuple[str, bool, bool]] = []  # delimiters of here documents: text, quoted, tabs
        self._documents: list[Word] = []
        self._output: Word | None = None
        self._operator = ""

    def commands(self) -> Iterator[Command]:
        pipeline: list[Command] = []
        while self._at < len(self._text):
            self._operator = ""
            pipeline.append(self._command())
            if self._operator not in ("|", "|&"):
                yield from self._run(pipeline)
                pipeline = []
        yield from self._run(pipeline)

    def _run(self, pipeline: list[Command]) -> Iterator[Command]:
        background = self._operator == "&" and self._depth <= 0
        for command in pipeline:
            if command.words or command.assignments:
                yield replace(command, background=background)

    def _command(self) -> Command:
        """One simple command, up to its operator."""
        words: list[Word] = []
        assignments: dict[str, Word] = {}
        self._documents, self._output = [], None
        while not self._ended():
            if self._redirected():
                continue
            if not words and (match := _ASSIGNMENT.match(self._text, self._at)):
                self._assign(match, assignments)
                continue
            start = self._at
            found = self._word()
            if self._at == start:  # a character that starts nothing
                self._at += 1
            words.extend(found)
            words = self._without_keyword(words)
        self._finish(words, assignments)
        return Command(tuple(words), assignments, next(iter(self._documents), None), self._output)

    def _without_keyword(self, words: list[Word]) -> list[Word]:
        if len(words) != 1 or words[0].text not in _KEYWORDS:
            return words
        self._depth += (words[0].text in _OPENING) - (words[0].text in _CLOSING)
        return []

    def _finish(self, words: list[Word], assignments: dict[str, Word]) -> None:
        """Assignments that stand alone, or after export, last."""
        if words and words[0].text in _EXPORTS:
            for word in words[1:]:
                if match := _ASSIGNMENT.match(word.text):
                    value = replace(word, text=word.text[match.end() :])
                    self._set(match[1], value)
                    self._variables.exports[match[1]] = replace(value, known=value.known and self._depth <= 0)
        elif not words:
            for name, word in assignments.items():
                self._set(name, word)

    def _set(self, name: str, word: Word) -> None:
        self._variables.values[name] = word.text if word.known and self._depth <= 0 else None

    def _assign(self, match: re.Match[str], assignments: dict[str, Word]) -> None:
        name, appends = match[1], bool(match[2])
        here = self._place(self._at)
        self._at = match.end()
        if self._text[self._at : self._at + 1] == "(":
            self._at += 1
            before = self._variables.lists.get(name, ()) if appends else ()
            self._variables.lists[name] = (*before, *self._list())
            return
        words = self._word(splits=False)
        word = words[0] if words else Word("", line=here[0], column=here[1])
        old = self._variables.values.get(name, "") if appends else ""
        assignments[name] = replace(word, text=(old or "") + word.text, known=word.known and old is not None)

    def _list(self) -> Iterator[Word]:
        """The words up to the closing parenthesis of an array."""
        while self._at < len(self._text):
            self._blank(newlines=True)
            if self._text[self._at : self._at + 1] == ")":
                self._at += 1
                return
            start = self._at
            yield from self._word()
            if self._at == start:
                self._at += 1

    def _ended(self) -> bool:
        """Whether the command ends here; its operator is passed over."""
        self._blank()
        if self._at >= len(self._text):
            return True
        if not (match := _OPERATOR.match(self._text, self._at)):
            return False
        if match[0] == "&" and self._text[self._at : self._at + 2] == "&>":
            return False
        self._at = match.end()
        self._operator = match[0]
        if match[0] == "\n":
            self._take_documents()
        return True

    def _blank(self, newlines: bool = False) -> None:
        """Pass over blanks, continued lines and comments."""
        match = (_BLANK_LINES if newlines else _BLANK).match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _redirected(self) -> bool:
        """Pass over a redirection; a here document is taken at the end of the line."""
        match = _REDIRECTION.match(self._text, self._at)
        if not match:
            return False
        self._at = match.end()
        self._blank()
        start = self._at
        target = self._word(splits=False)
        if match[1] in ("<<", "<<-") and target:
            quoted = self._text[start : start + 1] in ("'", '"', "\\")
            self._pending.append((target[0].text, quoted, match[1] == "<<-"))
        elif match[1] == "<<<" and target:
            self._documents.append(target[0])
        elif match[0] == ">" and target:
            self._output = target[0]
        return True

    def _take_documents(self) -> None:
        for delimiter, _, tabs in self._pending:
            strip = "\t" if tabs else ""
            lines, start = [], self._at
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line, self._at = self._text[self._at : end].lstrip(strip), end + 1
                if line == delimiter:
                    break
                lines.append(line)
            self._documents.append(Word("\n".join(lines), line=self._place(start)[0]))
        self._pending = []

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._lines, at) - 1
        return line, at - self._lines[line]

    def _word(self, splits: bool = True) -> list[Word]:
        """The word here, as the words it becomes: several where an unquoted value has blanks."""
        line, column = self._place(self._at)
        pieces = _Pieces([Word("", line=line, column=column)])
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in " \t\n;&|()<>":
                break
            if character == "'":
                self._single(pieces)
            elif character == '"':
                self._double(pieces)
            elif character == "\\":
                self._escape(pieces)
            elif character in "$`":
                self._expand(pieces, quoted=not splits)
            else:
                self._plain(pieces)
        return pieces.finished()

    def _plain(self, pieces: _Pieces) -> None:
        match = _PLAIN.match(self._text, self._at)
        pieces.add(match[0] if match else "")
        self._at = match.end() if match else self._at + 1

    def _single(self, pieces: _Pieces) -> None:
        end = self._text.find("'", self._at + 1)
        end = len(self._text) if end < 0 else end
        pieces.quoted = True
        pieces.add(self._text[self._at + 1 : end])
        self._at = end + 1

    def _escape(self, pieces: _Pieces) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following != "\n":
            pieces.quoted = True
            pieces.add(following)
        self._at += 2

    def _double(self, pieces: _Pieces) -> None:
        pieces.quoted = True
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return
            if character == "\\" and self._text[self._at + 1 : self._at + 2] in tuple('"$`\\\n'):
                self._escape(pieces)
            elif character in "$`":
                self._expand(pieces, quoted=True)
            else:
                match = _IN_QUOTES.match(self._text, self._at)
                pieces.add(match[0] if match else character)
                self._at += len(match[0]) if match else 1

    def _expand(self, pieces: _Pieces, quoted: bool) -> None:
        start = self._at
        self._at = self._expansion_end() if self._expands else start + 1
        written = self._text[start : self._at]
        if len(written) == 1:
            pieces.add(written)
            return
        pieces.expanded = True
        inside = written[2:-1] if written.startswith("${") else written[1:]
        if array := _ARRAY.fullmatch(inside) or (re.fullmatch("[@*]", inside)):
            self._array(pieces, array, written, quoted)
        elif (match := _BRACED.fullmatch(inside)) and not written.startswith("$("):
            self._variable(pieces, match, written, quoted)
        else:
            pieces.add(written, known=False)

    def _array(self, pieces: _Pieces, match: re.Match[str], written: str, quoted: bool) -> None:
        name = match.groupdict().get("name") or "@"
        if name not in self._variables.lists:
            pieces.add(written, known=False)
            return
        words = self._variables.lists[name]
        if quoted and "*" in match[0]:
            pieces.add(" ".join(word.text for word in words), all(word.known for word in words))
            return
        prefix = pieces.words.pop()
        if words:
            pieces.words.extend((replace(words[0], text=prefix.text + words[0].text), *words[1:]))
        else:
            pieces.words.append(prefix)
            pieces.quoted = False  # "${NONE[@]}" is no word at all

    def _variable(self, pieces: _Pieces, match: re.Match[str], written: str, quoted: bool) -> None:
        name, default = match["name"], match["default"]
        defined = name in self._variables.values
        value = self._variables.values.get(name)
        if default is not None and (not defined or (match["colon"] and value == "")):
            value, defined = (default if not re.search(r"[$`\"'\\]", default) else None), True
        if value is None:
            pieces.add(written, False, () if defined else (name,))
        elif quoted:
            pieces.add(value)
        else:
            pieces.split(re.split(r"[ \t\n]+", value) if value else [""])

    def _expansion_end(self) -> int:
        """The position after the expansion that starts here."""
        text, start = self._text, self._at
        if text[start] == "`":
            end = text.find("`", start + 1)
            return len(text) if end < 0 else end + 1
        following = text[start + 1 : start + 2]
        if following in ("(", "{"):
            return _matching(text, start + 1, following, ")" if following == "(" else "}")
        if match := _NAME.match(text, start + 1):
            return match.end()
        return start + 2 if following and following in "@*#?$!-0123456789" else start + 1


def _matching(text: str, start: int, opening: str, closing: str) -> int:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position + 1
    return len(text)
