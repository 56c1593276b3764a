"""What a model's reply says: the option, boxes, number, terms, list or object it names. Pure, and linear in the reply.

The order of option parsing is CaseScope's (section on answer parsing): a letter at the start; a boxed letter; of a long
reply only the last statement of an answer, or a last line that is an option; "Image j" where images are the options;
last the whole text of one option, in the place of the paper's extractor model. Options weighed along the way don't
count. Two different answers are none, and what maps to no option is None, which callers score as wrong.

No parser raises for any text, and none takes the absence of an answer for one: an empty reply, a letter inside a
word ("B-cell", "H&E"), the article "a", the pronoun "I", a missing value. Reasoning in <think> tags is dropped first.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

__all__ = [
    "BOX_GRID",
    "INSUFFICIENT",
    "INSUFFICIENT_PHRASES",
    "REFUSAL_PHRASES",
    "AnswerBox",
    "Vocabulary",
    "fold",
    "is_insufficient",
    "is_refusal",
    "json_spans",
    "parse_bools",
    "parse_boxes",
    "parse_count",
    "parse_json_object",
    "parse_number",
    "parse_option",
    "parse_ranking",
    "parse_terms",
    "strip_reasoning",
]

AnswerBox = tuple[int, int, int, int]
"""Corners (x1, y1, x2, y2) in 0..1000 of the image's width and height, x1 < x2 and y1 < y2."""

BOX_GRID = 1000
"""Boxes in answers count in thousandths of the image's sides (this project's unit; the paper adapts to each model)."""

INSUFFICIENT = "Insufficient information"
"""The option that PathView's traps ask for; it stands among the options of its ordinary tasks too."""

INSUFFICIENT_PHRASES = (
    "insufficient information",
    "insufficient evidence",
    "insufficient data",
    "insufficient context",
    "information is insufficient",
    "not enough information",
    "not enough evidence",
    "not enough context",
    "cannot be determined",
    "can't be determined",
    "can not be determined",
    "cannot be answered",
    "cannot be counted",
    "cannot determine",
    "can't determine",
    "not possible to determine",
    "impossible to determine",
    "unable to determine",
    "cannot tell",
    "can't tell",
)
"""Words for "this image does not answer the question" (this project's list; the paper does not print its own)."""

REFUSAL_PHRASES = (
    "i cannot",
    "i can't",
    "i can not",
    "i am unable",
    "i'm unable",
    "i am not able",
    "i'm not able",
    "i am sorry",
    "i'm sorry",
    "i apologize",
    "i apologise",
    "i must decline",
    "i won't",
    "i will not",
    "as an ai",
    "as a language model",
    "cannot assist",
    "can't assist",
    "cannot help with",
    "can't help with",
    "cannot provide",
    "can't provide",
    "unable to provide",
    "unable to assist",
    "unable to answer",
    "unable to view",
    "unable to analyze",
    "unable to analyse",
    "not qualified to",
    "consult a pathologist",
    "consult a medical professional",
    "consult a qualified",
)
"""Words for declining to answer (this project's list)."""

_SENTENCE_CHARS = 300
"""An option's text inside a longer line is one mentioned along the way."""


_STATEMENTS = 2000
"""Statements of an answer that are read at most, from the last; a reply with more repeats itself."""

_LONG_ENOUGH = 4
"""Letters of an option's text that is looked for within a sentence; a shorter one ("No") is a common word."""


def strip_reasoning(text: str) -> str:
    """The reply without its <think> blocks. An unclosed block runs to the end, an unopened one from the start."""
    if "think" not in text.lower():
        return text
    kept: list[str] = []
    inside = False
    for place, part in enumerate(_THINK_TAG.split(text)):
        if place % 2 == 0:
            if not inside:
                kept.append(part)
        elif part:
            if not inside:
                kept.clear()
            inside = False
        else:
            inside = True
    return "".join(kept)


_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def fold(text: str) -> str:
    """Text as it is compared: compatibility forms, case, white space, markdown, quotes and hyphens made alike.

    Signs stay, so that "ER+" and "ER-" or "<5 %" and ">5 %" differ. One trailing full stop is dropped.
    """
    folded = _plain(text).casefold()
    folded = " ".join(_MARKS.sub(" ", _HYPHEN.sub(" ", folded)).split())
    return folded.removesuffix(".").rstrip()


_MARKS = re.compile(r"[*_`\"“”„«»\x00]+")
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")


def _plain(text: str) -> str:
    """Compatibility forms (full-width letters and signs), one apostrophe, one hyphen, no unseen signs; the em dash
    stays."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_ALIKE)


_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
"""Soft hyphens, joiners, marks of direction and of byte order: signs without a shape."""

_ALIKE = {0x2018: "'", 0x2019: "'"} | dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), "-")


# --------------------------------------------------------------------------------------------------------------------
# Options


def parse_option(text: str, options: Sequence[str], *, images: bool = False) -> int | None:
    """Which of `options` (at most 26, in the order shown) the reply chose; None where it names none, or several.

    With `images` the options name images ("Image 3"), and a reply that speaks of one image alone chose it. A start, a
    box and a statement that disagree are several answers. Chance: 1 / number of options for a uniform guesser.
    """
    reply = _plain(strip_reasoning(text)).strip()
    if not reply or not options:
        return None
    reader = _OptionReader(reply, options)
    start = reader.at_start()
    found = [answer for answer in (start, reader.boxed(), reader.stated()) if answer is not None]
    if found:
        if found[0] == _SEVERAL and len(found) > 1:  # "A or B. Final answer: B"
            found = found[1:]
        return found[0] if len(set(found)) == 1 and found[0] != _SEVERAL else None
    answer = reader.last_line()
    if answer is None and images:
        answer = reader.image()
    if answer is None:
        answer = reader.mentioned(reader.lines[-1])
    return None if answer == _SEVERAL else answer


_SEVERAL = -1

_LETTER = re.compile(
    r"[\s*_`\"“'#>$|~•-]{0,16}"
    r"(?:(?i:(?:the\ )?(?:correct\ )?(?:option|choice|letter|answer))\b[\s*_`:]{1,8})?"
    r"(?P<open>[\s(\[{<*_`\"“'【]{0,12})(?P<letter>[A-Za-z])(?P<close>[)\]}>*_`\"”'】]{0,12})"
)
_BOXED = re.compile(r"\\{1,2}(?:boxed|fbox)\s{0,3}\{")
_TEX = re.compile(r"\s{0,3}\\{1,2}(?:textbf|textit|text|mathrm|mathbf|rm|bf)\s{0,3}\{?")
_HEADS = (
    *("answer", "solution", "choice", "option", "letter", "selection", "diagnosis"),
    *("choose", "select ", "pick", "go with"),
    *("antwort", "antwoord", "respuesta", "réponse", "risposta", "resposta", "ответ"),
    *("答案", "答え", "正解", "选", "選", "回答", "정답", "الإجابة"),
)
"""What a statement of the answer begins with, in lower case; looked for as plain text, as a regular expression that
looks for all of them in a long reply takes most of the time of scoring it."""
_STATEMENT = re.compile(
    r"""(?:answer|solution|choice|option|letter|selection|(?<!differential\ )diagnosis)["'*_`)\]]{0,6}\s{0,3}
      (?:(?:is|would\ be|will\ be|should\ be|must\ be)(?!\w)\s{0,3}:?|:|=|→|-(?=\s))
    |(?:(?<=i\ )|(?<=we\ )|(?<=would\ )|(?<=will\ )|(?<='d\ )|(?<='ll\ ))(?:choose|select|pick|go\ with)(?!\w)
    |(?<=<)answer>
    |(?:antwort|antwoord|respuesta|réponse|risposta|resposta|ответ)(?!\w)(?:\ (?:correct[ae]|correta|corretta)(?!\w))?
      (?:\ (?:ist|lautet|is|es|est|è|é)(?!\w)(?:\ la(?!\w))?)?\s{0,3}:?
    |(?:答案|答え|正解|(?<!不)选(?:择|(?!项))|(?<!不)選(?:擇|(?!項|択肢))|回答|정답|الإجابة)(?:应该)?(?:是|为|為|は|은|는)?\s{0,3}:?""",
    re.VERBOSE,
)
_VERDICT = re.compile(
    r"(?P<letter>[A-Z])[)\]*\".]{0,4}\ (?i:is|seems|appears)(?i:\ to\ be)?(?i:\ the)?(?i:\ most|\ single)?"
    r"(?i:\ (?:correct|right|best|likely|appropriate|accurate))(?!\w)"
)
_FOLLOWER = re.compile(r"(?:is|because|since|as|due)(?!\w)", re.IGNORECASE)
_DENIED = re.compile(
    r"\s{0,3}(?:is|was|are|would be|can be|seems|appears|looks)\s{0,3}(?:definitely |clearly |very |highly |also )?"
    r"(?:not\b|n't|in(?:correct|consistent|appropriate)|wrong|false|un(?:likely|supported)|excluded|ruled out|absent|"
    r"less likely|eliminated)",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"[\s.)\]*_\"']{0,6}(?:(?P<comma>,)|/|&|\+|(?i:and|or|und|oder|y|o|et|ou|и|или)(?!\w)|和|或|、)"
    r"(?:\s{0,3}(?i:and|or)(?!\w))?\s{0,3}(?:(?i:option|choice)\ )?(?P<open>[(\[*_\"']{0,4})(?P<letter>[A-Z])"
    r"(?P<end>[)\].,;:!?*_\"'/&+<]|\s{0,9}$|\s{0,3}[\n,/&]|\s(?i:and|or)(?!\w)|\s(?=\w))",
    re.MULTILINE,
)
_LISTED = re.compile(r"^[\s*_(\[>#•-]{0,12}([A-Z])(?:[)\].:]|\*\*|\s{0,8}$)", re.MULTILINE)
_IMAGE = re.compile(
    r"(?<!\w)(?:image|field|figure|panel|picture|img|photo)s?[\s#*_(\[]{0,4}(\d{1,3})(?!\w)", re.IGNORECASE
)
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯、。]")
_CLAUSE = re.compile(
    r"(?<!\d)[.](?=\s|$)|[;,:!?\n()]|(?<!\w)(?:but|however|although|whereas|so|therefore|thus|hence)(?!\w)"
)
_NEGATION = re.compile(
    r"(?<!\w)(?:not|no|never|without|neither|nor|cannot|unlikely|rather than|instead of|as opposed to|other than|"
    r"unlike|exclud\w{1,3}|rul\w{1,3} out|against|absence of|lacks?|negative for)(?!\w)|n't(?!\w)"
)


class _OptionReader:
    """A reply without its reasoning, and the places where it may name an option: an index, several, or None."""

    def __init__(self, reply: str, options: Sequence[str]) -> None:
        self._reply = reply
        self._options, self._by_length = _folded(tuple(options))
        self.lines = [line for line in map(str.strip, reply.splitlines()) if line] or [""]
        self._listed = self._options_listed()

    def at_start(self) -> int | None:
        """A letter at the start, or a first line that begins with an option's text and names no other."""
        if self._listed:
            return None
        letter = self._letter_at(0)
        if letter is not None:
            return letter
        line = self.lines[0][:_SENTENCE_CHARS]
        named = self._named_at(line, ends=True)
        if named is None or named == self.mentioned(line):
            return named
        return named if len(self._options[named]) < _LONG_ENOUGH and self.mentioned(line) is None else None

    def boxed(self) -> int | None:
        """The option in \\boxed{}: a letter, or its text; boxes that differ are several answers."""
        answers = set()
        for box in _BOXED.finditer(self._reply):
            start = box.end()
            while tex := _TEX.match(self._reply, start):
                start = tex.end()
            inside = self._reply[start : start + _SENTENCE_CHARS].split("}", 1)[0]
            letter = self.whole(inside)
            if letter is not None:
                answers.add(letter)
        return _one(answers)

    def stated(self) -> int | None:
        """The option of the last explicit statement that names one."""
        last: tuple[int, int] | None = None
        for verdict in _VERDICT.finditer(self._reply):
            index = ord(verdict["letter"]) - ord("A")
            before = self._reply[max(0, verdict.start() - 4) : verdict.start()].rstrip('([*"')[-1:]
            if index < len(self._options) and not _is_word(before) and before not in ("&", "-"):
                last = (verdict.end(), index)
        for end in self._statements():
            if last and end < last[0]:
                break
            answer = self._letter_at(end)
            if answer is None:
                answer = self._named_at(self._reply[end : end + _SENTENCE_CHARS].lstrip().split("\n", 1)[0])
            if answer is not None:
                return answer
        return last[1] if last else None

    def _statements(self) -> Iterator[int]:
        """Where the statements of an answer end and the answers follow, the last first."""
        lower = self._reply.lower()
        if len(lower) != len(self._reply):  # a few letters have no lower case of one character
            lower = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in self._reply)
        places = []
        for head in _HEADS:
            place = lower.find(head)
            while place >= 0:
                places.append(place)
                place = lower.find(head, place + 1)
        for place in sorted(places, reverse=True)[:_STATEMENTS]:
            statement = _STATEMENT.match(lower, place)
            if statement and not _is_word(lower[max(place - 1, 0) : place]):
                yield statement.end()

    def last_line(self) -> int | None:
        """A last line that is an option and nothing else, unless it only ends a list of the options."""
        return _SEVERAL if self._listed == len(self.lines) else self.whole(self.lines[-1])

    def image(self) -> int | None:
        """The option that names the one image that the reply speaks of."""
        numbers = {int(number) for number in _IMAGE.findall(self._reply)}
        if len(numbers) != 1:
            return _SEVERAL if numbers else None
        number = numbers.pop()
        return _one({index for index, option in enumerate(self._options) if _numbers(option) == {number}})

    def mentioned(self, line: str) -> int | None:
        """The one option whose whole text stands in a line of a sentence or two, and is not denied there."""
        if len(line) > _SENTENCE_CHARS:
            return None
        folded = fold(line)
        whole = [index for index, option in enumerate(self._options) if option == folded]
        if whole:
            return _one(set(whole))
        for index in self._by_length:
            folded = _replace_word(folded, self._options[index], f" \x00{index}\x00 ")
        answers = set()
        for clause in _CLAUSE.split(folded):
            for mention in re.finditer("\x00(\\d+)\x00", clause):
                denied = _NEGATION.search(clause, 0, mention.start()) or _DENIED.search(clause, mention.end())
                if not denied and len(self._options[int(mention[1])]) >= _LONG_ENOUGH:
                    answers.add(int(mention[1]))
        return _one(answers)

    def _options_listed(self) -> int:
        """How many lines the reply takes to list the options, where it begins by listing two or more from A on."""
        listed = lines = 0
        for number, line in enumerate(self.lines, start=1):
            match = _LISTED.match(line)
            if match and ord(match[1]) - ord("A") == listed < len(self._options):
                listed, lines = listed + 1, number
            elif not listed:
                break
        return lines if listed > 1 else 0

    def whole(self, line: str) -> int | None:
        """The option that a whole line is: its letter, its text, or both."""
        if len(line) > _SENTENCE_CHARS:
            return None
        folded = fold(line)
        for lead in ("option ", "choice "):
            folded = folded.removeprefix(lead)
        bare = folded.strip("()[]{}<>【】.:$\\ ")
        if len(bare) == 1 and bare.isascii() and bare.isalpha() and ord(bare) - ord("a") < len(self._options):
            return ord(bare) - ord("a")
        same = {index for index, option in enumerate(self._options) if option and option == folded}
        if same:
            return _one(same)
        letter, _, rest = folded.lstrip("([{").partition(" ")
        letter = letter.strip("()[]{}.:,-")
        rest = rest.strip(" -—:()")
        if len(letter) == 1 and "a" <= letter <= "z":
            index = ord(letter) - ord("a")
            if index < len(self._options) and rest == self._options[index].strip(" -—:()"):
                return index
        return None

    def _letter_at(self, start: int) -> int | None:
        match = _LETTER.match(self._reply, start)
        if match is None:
            return None
        letter = match["letter"]
        index = ord(letter.upper()) - ord("A")
        if index >= len(self._options) or not self._stands_alone(match, index):
            return None
        end = match.end()
        rest = self._reply[end : end + _SENTENCE_CHARS].split("\n", 1)[0]
        if _DENIED.match(rest):
            return None
        named = self._named_at(rest.lstrip(" .:,;)-—"))
        if named is not None and named not in (index, _SEVERAL):
            return _SEVERAL
        return _SEVERAL if self._goes_on(rest, index) else index

    def _stands_alone(self, match: re.Match[str], index: int) -> bool:
        """Whether a letter is an option's, not a word, part of one, an article, a pronoun or an abbreviation."""
        letter, opened, closed = match["letter"], match["open"].strip(), match["close"]
        rest = self._reply[match.end() : match.end() + _SENTENCE_CHARS].split("\n", 1)[0]
        after = rest.lstrip(" \t\r*_")
        if not after.strip(" .!"):
            return True
        if _is_word(rest[0]) or (rest[0] == "-" and _is_word(rest[1:2])) or rest[0] in "&'/":
            return rest[0] == "/" and bool(_ANOTHER.match(rest))
        if any(sign in closed for sign in ")]}>】") or (opened and closed):
            return True
        own_text = self._named_at(after.lstrip(" .:,;-—(")) == index
        if rest[0] in ":)]}>】;—" or rest.startswith("</") or _CJK.match(rest):
            return True
        if rest[0] == ",":
            return letter.isupper() and letter != "I"
        if rest[0] == ".":
            return own_text or (letter.isupper() and not _is_word(rest[1:2]) and not after[1:].lstrip()[:1].islower())
        if not letter.isupper():
            return False
        if after[0] in "-—=":
            return True
        if own_text:
            return letter not in "AI" or fold(after) == self._options[index] or after[0] == "("
        return bool(_FOLLOWER.match(after)) or bool(_ANOTHER.match(rest))

    def _goes_on(self, rest: str, index: int) -> bool:
        """Whether a chosen letter, and its text, are followed by another letter: "A and B", "A. Benign or B"."""
        places = [rest]
        own = self._options[index]
        folded = _HYPHEN.sub(" ", rest).casefold()
        at = folded.find(own) if own and len(folded) == len(rest) else -1
        if 0 <= at <= 4:
            places.append(rest[at + len(own) :])
        for place in places:
            other = _ANOTHER.match(place)
            if other and ord(other["letter"]) - ord("A") < len(self._options) and other["letter"] != chr(65 + index):
                running = not other["open"] and other["end"].isspace() and "\n" not in other["end"] and other["end"]
                if not (running and (other["comma"] or other["letter"] in "AI")):
                    return True
        return False

    def _named_at(self, line: str, *, ends: bool = False) -> int | None:
        """The option whose text a line begins with; with `ends`, only where a sentence or phrase ends there."""
        if not line:
            return None
        folded = fold(line).lstrip("(['")
        for index in self._by_length:
            option = self._options[index]
            if folded.startswith(option):
                after = folded[len(option) :]
                if ends and after and not (after[0] in ",.;:!)" or after.startswith(" -")):
                    return None
                if not (_is_word(after[:1]) and _is_word(option[-1])):
                    return None if _DENIED.match(after) else index
        return None


@lru_cache(maxsize=4096)
def _folded(options: tuple[str, ...]) -> tuple[list[str], list[int]]:
    """Options as they are compared, and the places of those that no other equals, the longest first."""
    folded = [fold(option) for option in options]
    alone = [index for index, option in enumerate(folded) if option and folded.count(option) == 1]
    return folded, sorted(alone, key=lambda index: -len(folded[index]))


def _one(answers: set[int]) -> int | None:
    if not answers:
        return None
    return next(iter(answers)) if len(answers) == 1 else _SEVERAL


def _is_word(character: str) -> bool:
    """Whether a character carries on a word of letters; scripts without spaces between words don't."""
    return bool(character) and (character.isalnum() or character == "_") and not _CJK.match(character)


def _replace_word(text: str, word: str, by: str) -> str:
    parts: list[str] = []
    start = 0
    while (at := text.find(word, start)) >= 0:
        end = at + len(word)
        inside = (_is_word(text[at - 1 : at]) and _is_word(word[0])) or (
            _is_word(text[end : end + 1]) and _is_word(word[-1])
        )
        parts += [text[start:at], word if inside else by]
        start = end
    return "".join([*parts, text[start:]]) if parts else text


def _numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d{1,6}", text)}


# --------------------------------------------------------------------------------------------------------------------
# Refusals


def is_refusal(text: str) -> bool:
    """Whether the reply declines to answer, by `REFUSAL_PHRASES`. Ask it of a reply that named no answer."""
    return _has_phrase(text, REFUSAL_PHRASES)


def is_insufficient(text: str, options: Sequence[str] = ()) -> bool:
    """Whether the reply says that the evidence does not suffice: by the option that says so, else by its words.

    A reply that chose another of the `options` did not.
    """
    chosen = parse_option(text, options) if options else None
    return _has_phrase(text if chosen is None else options[chosen], INSUFFICIENT_PHRASES)


def _has_phrase(text: str, phrases: Sequence[str]) -> bool:
    folded = " " + fold(strip_reasoning(text))
    return any(phrase in folded and _replace_word(folded, phrase, "") != folded for phrase in phrases)


# --------------------------------------------------------------------------------------------------------------------
# Objects, lists, numbers


def parse_json_object(text: str) -> dict[str, object] | None:
    """The last JSON object of the reply, fenced or not; None without one. NaN and Infinity are not JSON."""
    reply = strip_reasoning(text)
    for start, end in reversed(json_spans(reply)):
        value = _loads(reply[start:end])
        if isinstance(value, dict):
            return value
    return None


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def json_spans(text: str) -> list[tuple[int, int]]:
    """The outermost balanced {...} of a text, in order. Quotes count only within braces."""
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    quoted = False
    for sign in re.finditer(r'\\.|["{}]', text, re.DOTALL):
        character = sign[0]
        if character == '"' and opened:
            quoted = not quoted
        elif character == "{" and not quoted:
            opened.append(sign.start())
        elif character == "}" and not quoted and opened:
            start = opened.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, sign.end()))
    return spans


def parse_bools(text: str, count: int, key: str = "answers") -> tuple[bool, ...] | None:
    """`count` truth values, from {"answers": [true, ...]} or a reply that holds just so many of true and false.

    None where the number differs or a value is neither: null is not false.
    """
    stated = parse_json_object(text)
    if stated is not None and key in stated:
        values = stated[key]
        if not isinstance(values, list) or len(values) != count:
            return None
        words = [str(value).strip().casefold() if isinstance(value, bool | str) else "" for value in values]
    else:
        words = [word.casefold() for word in _TRUTH.findall(strip_reasoning(text))]
    return tuple(word == "true" for word in words) if len(words) == count and set(words) <= {"true", "false"} else None


_TRUTH = re.compile(r"(?<!\w)(?:true|false|null|none)(?!\w)", re.IGNORECASE)


def parse_boxes(text: str) -> tuple[AnswerBox, ...] | None:
    """Boxes as [x1, y1, x2, y2] or (x1,y1),(x2,y2), in thousandths of the image's sides, in the order given.

    Rounded, clipped to 0..1000, corners sorted, boxes without an area dropped. After a statement of the answer only
    what follows the last counts. None where no box nor empty list is stated, () where there is but none is left.
    """
    reply = _plain(strip_reasoning(text))
    boxes = _boxes(_after_last(_BOXES_STATEMENT, reply))
    return _boxes(reply) if boxes is None else boxes


_BOXES_STATEMENT = re.compile(r"(?i)(?<!\w)answer[\"'*_]{0,4}\s{0,3}(?:is|:|=)")


def _after_last(pattern: re.Pattern[str], text: str) -> str:
    """What follows the last match; nothing without one."""
    end = len(text)
    for match in pattern.finditer(text):
        end = match.end()
    return text[end:]


_COORDINATE = r"\s{0,6}([-+]?\d{1,9}(?:\.\d{1,18})?)\s{0,6}"
_BOX = re.compile(
    rf"[\[(]{_COORDINATE},{_COORDINATE}(?:,|[)\]]\s{{0,6}},?\s{{0,6}}[\[(]){_COORDINATE},{_COORDINATE}[\])]"
)
_EMPTY_LIST = re.compile(r"\[\s{0,6}\]")


def _boxes(text: str) -> tuple[AnswerBox, ...] | None:
    found = [[min(max(round(float(side)), 0), BOX_GRID) for side in box] for box in _BOX.findall(text)]
    if not found:
        return () if _EMPTY_LIST.search(text) else None
    boxes = ((min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)) for x1, y1, x2, y2 in found)
    return tuple(box for box in boxes if box[0] < box[2] and box[1] < box[3])


def parse_number(text: str) -> float | None:
    """The number that the reply states: in a box, after the last statement of an answer, or the only one in its last
    line. None without one, or where several differ, as in a range."""
    reply = _plain(strip_reasoning(text)).strip()
    boxed = [reply[box.end() : box.end() + 40].split("}", 1)[0] for box in _BOXED.finditer(reply)]
    if boxed:
        return _only_number(boxed[-1])
    statements = list(_COUNT_STATEMENT.finditer(reply))
    if statements:
        stated = reply[statements[-1].end() :].lstrip(" *_`\"'\n").split("\n", 1)[0]
        number = _only_number(re.split(r"[;!?]|\.(?!\d)", stated[:_SENTENCE_CHARS], maxsplit=1)[0])
        if number is not None or _NUMBER.search(stated[:_SENTENCE_CHARS]):
            return number
    lines = [line for line in reply.splitlines() if line.strip()]
    if not lines:
        return None
    word = fold(lines[-1])
    if word in _NUMBER_WORDS:
        return float(_NUMBER_WORDS.index(word))
    return _only_number(lines[-1]) if len(lines[-1]) <= _SENTENCE_CHARS else None


_NUMBER = re.compile(r"(?<![\w.,])([-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?)(?![\w]|[.,]\d)")
_COUNT_STATEMENT = re.compile(r"(?i)(?<!\w)(?:answer|count|number|total)[\"'*_`]{0,4}\s{0,3}(?:is|:|=)")
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)


def _only_number(text: str) -> float | None:
    numbers = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    return numbers.pop() if len(numbers) == 1 else None


def parse_count(text: str) -> int | None:
    """As `parse_number`, for what is counted: None where the number is negative or no whole one."""
    number = parse_number(text)
    return None if number is None or number < 0 or number != int(number) else int(number)


def parse_ranking(text: str, options: Sequence[str]) -> tuple[int, ...] | None:
    """Options from best to worst: letters or whole texts in a JSON list, or apart by >, commas, or lines.

    Numbers before an entry are dropped. A ranking may stop early, but names no option twice; else None.
    """
    reply = _plain(strip_reasoning(text)).strip()
    reader = _OptionReader(reply, options)
    ranked = _ranked(_after_last(_RANKING_STATEMENT, reply), reader)
    return _ranked(reply, reader) if ranked is None else ranked


_RANKING_STATEMENT = re.compile(r"(?i)(?<!\w)(?:answer|ranking|order)[\"'*_`]{0,4}\s{0,3}(?:is|:)")


def _ranked(text: str, reader: _OptionReader) -> tuple[int, ...] | None:
    text = re.sub(r"^[\s*`]{0,9}(?:json)?|[\s*`.}]{0,9}$", "", text[:5000])
    for separator in (r"\n", r"[>→≻]", r",(?!\s{0,3}(?i:nos)\b)", r";"):
        parts = [part for part in re.split(separator, text.strip("[]")) if part.strip(" \t\"'`*")]
        places = [_ranked_entry(part, reader) for part in parts]
        if len(parts) > 1 and None not in places:
            ranked = tuple(place for place in places if place is not None)
            return ranked if len(set(ranked)) == len(ranked) else None
    one = _ranked_entry(text.strip("[]"), reader)
    return None if one is None else (one,)


def _ranked_entry(text: str, reader: _OptionReader) -> int | None:
    entry = re.sub(r"^[\s\"'`*(\[-]{0,9}(?:\d{1,2}\s{0,2}[.):]\s{0,3})?", "", text).strip(" \t\"'`*")
    answer = reader.whole(entry) if entry else None
    return None if answer == _SEVERAL else answer


# --------------------------------------------------------------------------------------------------------------------
# Terms


class Vocabulary:
    """Standard terms and other spellings of them: `aliases` maps a spelling to a term. A plural s makes no difference.

    Raises nothing; an alias of a term that is not in `terms` adds that term.
    """

    def __init__(self, terms: Sequence[str], aliases: Mapping[str, str] | None = None) -> None:
        spellings = [(term, term) for term in terms] + list((aliases or {}).items())
        self.terms = tuple(dict.fromkeys(term for _, term in spellings))
        self._terms = {words: term for spelling, term in reversed(spellings) if (words := _words(spelling))}
        self._longest = max(map(len, self._terms), default=0)

    def standard(self, text: str) -> str | None:
        """The standard term of one spelling; None where it is no spelling of any."""
        return self._terms.get(_words(text))

    def find(self, text: str) -> Iterator[str]:
        """Standard terms of a text in order, the longest spelling at each place, without those just after a "no"."""
        words = _words(text)
        place = 0
        while place < len(words):
            for length in range(min(self._longest, len(words) - place), 0, -1):
                term = self._terms.get(words[place : place + length])
                if term is not None:
                    if not _NO.intersection(words[max(0, place - 2) : place]):
                        yield term
                    place += length
                    break
            else:
                place += 1


_NO = frozenset(("no", "not", "without", "absent", "never", "neither", "nor"))
_WORD = re.compile(r"[\w+]+|[,.;:\n]")


def _words(text: str) -> tuple[str, ...]:
    """Words and the signs between them, as a negation ends at a sign; without the s of a plural."""
    found = _WORD.findall(fold(text.replace("\n", " ; ")))
    return tuple(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found
    )


def parse_terms(text: str, vocabulary: Vocabulary) -> tuple[str, ...] | None:
    """The standard terms that the reply names, each once, in its order; None where it names none.

    From a list, JSON or prose. A term denied ("no necrosis") is not named.
    """
    found = dict.fromkeys(vocabulary.find(_plain(strip_reasoning(text))))
    return tuple(found) or None
