"""Which diagnosis a free text names, read so that no word that could change it is passed over.

Around the name (or several names of the one diagnosis) may stand only

    articles, and words that introduce a diagnosis: "Diagnosis:", "most likely", "consistent with", "features of"
    "NOS", "no special type", "conventional", "classic", "usual type"
    a site: "of the left lung", "cutaneous"; where the diagnosis' own names or family say one, or it is a lymphoma, as
    one of the skin is another than that of a node, no other than its own
    grades and differentiation, of the carcinomas in `GRADED`: elsewhere they may make another diagnosis
    its abbreviation in brackets, "(GIST)"

With anything else - "in situ", "no evidence of", "cannot be excluded", "versus", "metastatic", a subtype that the
ontology does not know, a question mark - the text names none. Case, plural s, possessives, hyphens, and spellings by
`_SPELLINGS` make no difference, where no other diagnosis is told apart by them alone. The lists are this project's;
what they leave out costs a model points and gives none away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .answers import fold

__all__ = ["GRADED", "DiagnosisNames", "name_words"]

_TOKEN = re.compile(r"[\w+]+|\S")
_POSSESSIVE = re.compile(r"'s?(?!\w)")
_NAME = "\0"
"""Stands where a name was; `fold` leaves none in a text."""


_SPELLINGS = {"ae": "e", "oe": "e", "tumour": "tumor", "centre": "center", "fibre": "fiber", "grey": "gray"}
"""British and American."""

_JOINING = frozenset((",", "-"))
"""Signs that may stand between the words of a name."""

_SEVERAL = ""
"""Stands for a diagnosis where several have names of the same words."""


def _spelled(text: str) -> str:
    """The text in words and signs, a space between each, in one spelling."""
    folded = _POSSESSIVE.sub("", fold(text))
    for british, american in _SPELLINGS.items():
        folded = folded.replace(british, american)
    return " ".join(_TOKEN.findall(folded))


def _word(token: str) -> str:
    return token[:-1] if len(token) > 3 and token.endswith("s") and not token.endswith("ss") else token


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] in "_+"


def name_words(name: str) -> tuple[str, ...]:
    """The words of a name as they are compared; signs between them do not count."""
    return tuple(_word(token) for token in _spelled(name).split() if _is_word(token))


# All of these are in the spelling of `_spelled`.

_INTRODUCING = (
    *("a", "an", "the", "this", "it", "is", "are", "diagnosis", "final", "likely", "probable", "probably"),
    *("histologic", "histological", "histopathologic", "histopathological", "pathologic", "pathological"),
    *("morphologic", "morphological", "microscopic", "features", "features of", "findings", "findings of"),
    *("most likely", "most probable", "most probably", "consistent with", "most consistent with", "compatible with"),
    *("most compatible with", "in keeping with", "suggestive of", "highly suggestive of", "diagnostic of"),
    *("characteristic of", "favor", "favour", "favored", "favoured"),
)
_UNSPECIFIED = (
    *("nos", "not otherwise specified", "nst", "no special type", "of no special type", "usual type"),
    *(f"{word}{kind}" for word in ("conventional", "classic", "classical") for kind in ("", " type", " variant")),
)

_SITES = {
    "breast": ("breast", "mammary"),
    "bladder": ("bladder", "urinary bladder"),
    "cervix": ("cervix", "uterine cervix"),
    "colon and rectum": ("colon", "colonic", "colorectal", "rectum", "rectal", "large bowel", "large intestine"),
    "kidney": ("kidney", "renal"),
    "liver": ("liver", "hepatic"),
    "lung": ("lung", "pulmonary"),
    "mouth": ("mouth", "oral", "oral cavity", "oral mucosa", "tongue"),
    "oesophagus": ("esophagus", "esophageal"),
    "pancreas": ("pancreas", "pancreatic"),
    "prostate": ("prostate", "prostate gland", "prostatic"),
    "skin": ("skin", "cutaneous"),
    "stomach": ("stomach", "gastric"),
    "thyroid": ("thyroid", "thyroid gland"),
    "uterus": ("uterus", "uterine", "endometrium", "endometrial"),
}
_FURTHER_SITES = {
    "liver": ("bile duct", "hepatocellular"),
    "elsewhere": (
        *("adrenal", "anal", "appendiceal", "appendix", "bone", "brain", "cardiac", "conjunctival", "ear"),
        *("gallbladder", "laryngeal", "larynx", "lymph node", "meningeal", "nasal", "nerve", "nodal", "ovarian"),
        *("ovary", "parotid", "penile", "peritoneal", "pituitary", "pleural", "salivary", "sinonasal", "small bowel"),
        *("soft tissue", "testicular", "testis", "thymic", "uveal", "vaginal", "vulvar"),
    ),
}
"""Sites that tie a diagnosis to them and that no answer may add: a small cell carcinoma of the ovary, a giant cell
tumour of soft tissue or a fibroma of bone is another diagnosis."""

GRADED = (
    *("adenocarcinoma", "squamous cell carcinoma", "urothelial carcinoma", "hepatocellular carcinoma"),
    *("ductal carcinoma", "lobular carcinoma", "endometrioid carcinoma", "renal cell carcinoma"),
)
"""What a grade leaves the same. It does not in general: a meningioma of grade 3 is malignant, a well differentiated
neuroendocrine carcinoma was a carcinoid, and a poorly differentiated chordoma is of its own. "Low grade" is in no list,
as low-grade urothelial carcinomas are mostly not invasive."""

_DIFFERENTIATED = r"(?:well|moderately|poorly)(?: (?:to|and) (?:moderately|poorly))? differentiated"
_GRADE = re.compile(
    rf"(?<!\S)(?:{_DIFFERENTIATED}|high grade|g[1-4]|grade group [1-5]|"
    r"(?:(?:who|who / isup|isup|figo|fuhrman|nottingham|histologic|histological|nuclear) )?grade (?:[1-4]|i{1,3}|iv)|"
    r"gleason (?:score |grade |pattern )?\d{1,2}(?: ?\+ ?\d)?(?: = \d{1,2})?)(?!\S)"
)
_HARMLESS = re.compile(rf"(?<!\S)(?:{'|'.join(sorted((*_INTRODUCING, *_UNSPECIFIED), key=len, reverse=True))})(?!\S)")
_SIGNS = re.compile(rf"[\s{_NAME},.;:()\[\]/—-]*")
_BRACKETED = re.compile(r"\( (\w{2,8}) \)")
_LITTLE_WORDS = ("of", "the", "in", "and", "with")


def _site_pattern(sites: Iterable[str], before: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?<!\S){before}({'|'.join(sorted(sites, key=len, reverse=True))})s?(?!\S)")


_STATED = {word: site for site, words in _SITES.items() for word in words}
_SITE_OF = _STATED | {word: site for site, words in _FURTHER_SITES.items() for word in words}
_ANY_SITE = _site_pattern(_SITE_OF)
_STATED_SITE = _site_pattern(_STATED, r"(?:(?:of|in) )?(?:the )?(?:(?:left|right) )?")
_SIDE = re.compile(r"(?<!\S)(?:left|right)(?!\S)")


class DiagnosisNames:
    """Diagnoses by their names. `known` are (diagnosis, its names, its family); no two share a name.

    Names of two that only spelling or a plural tells apart are read where they are the whole text as written.
    """

    def __init__(self, known: Iterable[tuple[str, Sequence[str], str]]) -> None:
        self._of_words: dict[tuple[str, ...], str] = {}
        self._whole: dict[str, str] = {}
        self._sites: dict[str, frozenset[str]] = {}
        self._signs: dict[tuple[str, ...], set[str]] = {}
        self._graded: set[str] = set()
        self._lymphomas: set[str] = set()
        for diagnosis, names, family in known:
            for name in names:
                words = name_words(name)
                other = self._of_words.setdefault(words, diagnosis)
                if other != diagnosis:
                    self._of_words[words] = _SEVERAL
                self._whole[fold(name)] = diagnosis
                signs = self._signs.setdefault(words, set(_JOINING))
                signs.update(token for token in _spelled(name).split() if not _is_word(token))
                said = f" {' '.join(words)} "
                if any(f" {' '.join(name_words(graded))} " in said for graded in GRADED):
                    self._graded.add(diagnosis)
                if "lymphoma" in said:
                    self._lymphomas.add(diagnosis)
            sites = _ANY_SITE.findall(" ; ".join(map(_spelled, (*names, family))))
            self._sites[diagnosis] = frozenset(_SITE_OF[word] for word in sites)
        self._of_words.pop((), None)
        self._longest = max(map(len, self._of_words), default=0)

    def named(self, text: str) -> str | None:
        """The diagnosis that a text names; None where it names none or several, or says more than the name."""
        if (whole := fold(text)) in self._whole:
            return self._whole[whole]
        found, names, around = self._found(_spelled(text).split())
        if len(found) != 1 or _SEVERAL in found:
            return None
        (diagnosis,) = found
        sites = {_SITE_OF[word] for word in _STATED_SITE.findall(around)}
        tied = self._sites[diagnosis] or diagnosis in self._lymphomas
        if tied and not sites <= self._sites[diagnosis]:
            return None
        for pattern in (_STATED_SITE, _SIDE, _HARMLESS, *([_GRADE] if diagnosis in self._graded else [])):
            around = pattern.sub(" ", around)
        for abbreviation in _BRACKETED.findall(around):
            if any(_abbreviates(abbreviation, name) for name in names):
                around = around.replace(f"( {abbreviation} )", " ")
        return diagnosis if _SIGNS.fullmatch(around) else None

    def _found(self, tokens: Sequence[str]) -> tuple[set[str], list[list[str]], str]:
        """The diagnoses named, the longest name at each place; the names as written; the text around them."""
        places = [place for place, token in enumerate(tokens) if _is_word(token)]
        words = [_word(tokens[place]) for place in places]
        found: set[str] = set()
        names: list[list[str]] = []
        around = list(tokens)
        at = 0
        while at < len(words):
            for length in range(min(self._longest, len(words) - at), 0, -1):
                name = tuple(words[at : at + length])
                diagnosis = self._of_words.get(name)
                first, last = places[at], places[at + length - 1]
                between = {token for token in tokens[first:last] if not _is_word(token)}
                if diagnosis is not None and between <= self._signs[name]:
                    found.add(diagnosis)
                    names.append([tokens[place] for place in places[at : at + length]])
                    around[first : last + 1] = [_NAME] + [""] * (last - first)
                    at += length
                    break
            else:
                at += 1
        return found, names, " ".join(filter(None, around))


def _abbreviates(short: str, name: Sequence[str]) -> bool:
    """Whether letters stand for a name: GIST for gastrointestinal stromal tumour, HCC for hepatocellular carcinoma.

    They are letters of the name in its order, from the first, the initials of its words among them, and one more than
    words at most: MIS is no melanoma, AIN no adenocarcinoma.
    """
    initials = [word[0] for word in name if word not in _LITTLE_WORDS]
    return (
        short[0] == name[0][0]
        and len(short) <= len(name) + 1
        and _in_order(initials, short)
        and _in_order(short, "".join(name))
    )


def _in_order(letters: Iterable[str], text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)
