"""A template and what fills its slots -> a docstring.

Paragraphs are wrapped, so that nobody has to wrap a template. Headings, examples, and the formula
under a paragraph that ends in ``::`` stay as they are written.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping

WIDTH = 100
INDENT = " " * 4

_SLOT = re.compile(r"\$(\w+)")
_SLOT_ALONE = re.compile(r"( *)\$(\w+)")
# An argument, and an entry of See Also or References, begin a paragraph of their own.
_ENTRY = re.compile(r"\.\. \[\d+\] |[\w.]+(?:, [\w.]+)* : ")
_RULE = re.compile(r"-+")
# The spaces beside a sign, and within "Eq. 1": no line ends there.
_GLUE = re.compile(r" (?=(?:[=+-]|->) )|(?<= [=+-]) |(?<=->) |(?<=Eq\.) ")


def filled(template: str, slots: Mapping[str, str], used: set[str]) -> list[str]:
    """Put texts in place of the slots, and of the slots in those; `used` gains the slots' names.

    A slot alone on its line becomes as many lines as its text has, which may be none.

    Raises
    ------
    ValueError
        If nothing fills a slot.
    """

    def text(name: str) -> list[str]:
        if name not in slots:
            raise ValueError(f"nothing fills the slot ${name}")
        used.add(name)
        return filled(slots[name].strip("\n"), slots, used)

    lines = []
    for line in template.splitlines():
        if alone := _SLOT_ALONE.fullmatch(line):
            lines += [f"{alone[1]}{each}".rstrip() for each in text(alone[2])]
        else:
            lines.append(_SLOT.sub(lambda slot: " ".join(text(slot[1])), line).rstrip())
    return lines


def docstring(lines: list[str]) -> str:
    """Wrap the lines, indent them as the docstring of a function and put them between quotes.

    Raises
    ------
    ValueError
        If the quotes cannot hold them, or if the first line does not stand alone.
    """
    # Where a slot was empty, two empty lines may meet.
    summary, *others = [line for i, line in enumerate(lines) if line or lines[i - 1]]
    opening = f'{INDENT}"""{summary}'
    if len(opening) > WIDTH or others[:1] != [""]:
        raise ValueError(f"one line of {WIDTH} columns is to stand alone at the top: {opening}")
    rest = [f"{INDENT}{line}" if line else "" for line in _wrapped(others)]
    text = "\n".join([opening.lstrip(), *rest, f'{INDENT}"""'])
    if '"""' in text[3:-3] or "\\" in text:
        raise ValueError(f"a docstring can hold neither a backslash nor three quotes: {summary}")
    return text


def _wrapped(lines: list[str]) -> Iterator[str]:
    formula = False
    for paragraph in _paragraphs(lines):
        if formula or paragraph[0].startswith(">>>") or _RULE.fullmatch(paragraph[-1]):
            yield from paragraph
        else:
            yield from _wrap(paragraph)
        if paragraph != [""]:
            formula = paragraph[-1].endswith("::")


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Group lines; an empty line is a paragraph."""
    paragraph: list[str] = []
    for line in lines:
        if paragraph and not _continues(paragraph, line):
            yield paragraph
            paragraph = []
        paragraph.append(line)
    yield paragraph


def _continues(paragraph: list[str], line: str) -> bool:
    first, last = paragraph[0], paragraph[-1]
    if not first or not line:
        return False
    if first.startswith(">>>"):
        return True
    return _margin(line) == _margin(last) and not _RULE.fullmatch(last) and not _ENTRY.match(line)


def _wrap(paragraph: list[str]) -> list[str]:
    if paragraph == [""]:
        return paragraph
    margin = _margin(paragraph[0])
    text = _GLUE.sub("\0", " ".join(" ".join(paragraph).split()))
    lines = textwrap.wrap(
        text,
        WIDTH - len(INDENT),
        initial_indent=margin,
        subsequent_indent=margin + " " * 3 if text.startswith(".. [") else margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
