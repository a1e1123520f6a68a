"""The five papers whose methods Shoal has: how to cite them, their words, and a figure of each.

`PaperFigure` says what `shoal papers` runs on a table of one's own; `docs/papers` has every figure
on the papers' tables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from shoal.errors import InputError, did_you_mean

MANUAL = "docs/papers"
"""Where the pages of the papers lie in the repository and its manual."""
_K = [3, 5, 10, 20, 50, 100]
_EPSILON = ["0.1", "1", "10"]
_LEAVES = 'levels = "leaves", fit = "none", as its nearest reading'


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper, as it is run on another table.

    Attributes:
        what: the figure, in the paper's numbering.
        curves: what `[protect]` states for each, by the paper's name; a list means alternatives, as
            in a grid of `shoal compare`.
        loss: the measure on the vertical axis: `SSE`, `IL1s`, or `SSE / SST`; in place of it
            `COUNT` for the error of counts against what naive Bayes learns, as in cormode2013.
        confidential: whether it needs a confidential column.
    """

    what: str
    loss: str
    curves: Mapping[str, Mapping[str, Any]]
    confidential: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        key: its name in BibTeX, in the manual and for `shoal papers`.
        authors: their full names.
        venue: the journal or proceedings.
        entry: the kind of BibTeX entry.
        details: further fields of it.
        methods: the methods that it proposes, by their names here, and what it calls each; with
            the parameters that make it so, if there are some.
        compared: the same of those that it compares them with.
    """

    key: str
    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    entry: str
    methods: Mapping[str, Mapping[str, str]]
    compared: Mapping[str, Mapping[str, str]]
    figure: PaperFigure
    details: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def short(self) -> str:
        """Cite it in a few words."""
        surnames = [name.rsplit(" ", 1)[1] for name in self.authors]
        return (
            f"{surnames[0]} et al. {self.year}"
            if len(surnames) > 2
            else (f"{' and '.join(surnames)} {self.year}")
        )

    @property
    def names(self) -> Mapping[str, Mapping[str, str]]:
        """What it calls methods, those that it compares too."""
        return {**self.methods, **self.compared}

    @property
    def page(self) -> str:
        """The page of the manual that repeats its figures."""
        return f"{MANUAL}/{self.key}.md"

    def __str__(self) -> str:
        *first, last = (name.rsplit(" ", 1)[1] for name in self.authors)
        return f"{', '.join(first)} and {last}, {self.title}, {self.venue} ({self.year})"

    @property
    def bibtex(self) -> str:
        """Write its entry for BibTeX."""
        venue = "journal" if self.entry == "article" else "booktitle"
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}",
            venue: self.venue,
            "year": str(self.year),
            **self.details,
        }
        return write_bibtex(self.entry, self.key, fields)


def write_bibtex(entry: str, key: str, fields: Mapping[str, str]) -> str:
    """Write an entry for BibTeX."""
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items()]
    return "\n".join([f"@{entry}{{{key},", *lines, "}"])


SANCHEZ_2014 = Paper(
    "sanchez2014",
    ("David Sánchez", "Josep Domingo-Ferrer", "Sergio Martínez"),
    "Improving the utility of differential privacy via univariate microaggregation",
    "Privacy in Statistical Databases",
    2014,
    "inproceedings",
    {
        "ir-laplace": {
            "IR+DP": "",
            "individual ranking and noise": "",
            "univariate microaggregation": "",
        }
    },
    {
        "individual-ranking": {"IR": "", "individual ranking": ""},
        "laplace": {"plain Laplace noise": ""},
        "insensitive": {"insensitive microaggregation": ""},
        "insensitive-laplace": {},
    },
    PaperFigure(
        "Figure 1",
        "SSE",
        {
            "individual ranking": {"method": "individual-ranking", "k": _K},
            "individual ranking and noise": {"method": "ir-laplace", "k": _K, "epsilon": _EPSILON},
            "plain Laplace noise": {"method": "laplace", "epsilon": _EPSILON},
        },
    ),
    {
        "series": "LNCS",
        "volume": "8744",
        "pages": "130--142",
        "publisher": "Springer",
        "doi": "10.1007/978-3-319-11257-2_11",
    },
)
SORIACOMAS_2017 = Paper(
    "soriacomas2017",
    ("Jordi Soria-Comas", "Josep Domingo-Ferrer"),
    "Differentially private data sets based on microaggregation and record perturbation",
    "MDAI",
    2017,
    "inproceedings",
    {
        "mdav-laplace": {"MDAV+DP": "", "Algorithm 1": "", "Algorithm 2": "groups and epsilons"},
        "ir-mdav-laplace": {
            "IR_MDAV+DP": "",
            "IR_MDAV+DP_1": 'split = "equal"',
            "IR_MDAV+DP_2": 'split = "proportional"',
            "DP_1": 'split = "equal"',
            "DP_2": 'split = "proportional"',
        },
        "public-laplace": {},
    },
    {
        "mdav": {"MDAV": ""},
        "individual-ranking": {"IR_MDAV": ""},
        "insensitive-laplace": {"INS+DP": "", "INS": ""},
    },
    PaperFigure(
        "Figure 3",
        "SSE",
        {
            "MDAV": {"method": "mdav", "k": _K},
            "individual ranking": {"method": "individual-ranking", "k": _K},
            "MDAV+DP": {
                "method": "mdav-laplace",
                "scale": "from-data",
                "k": _K,
                "epsilon": ["1", "2"],
            },
            "IR_MDAV+DP_1": {"method": "ir-mdav-laplace", "k": _K, "epsilon": ["1", "2"]},
            "IR_MDAV+DP_2": {
                "method": "ir-mdav-laplace",
                "split": "proportional",
                "k": _K,
                "epsilon": ["1", "2"],
            },
        },
    ),
    {
        "series": "LNCS",
        "volume": "10571",
        "pages": "119--131",
        "publisher": "Springer",
        "doi": "10.1007/978-3-319-67422-3_11",
    },
)
IFTIKHAR_2019 = Paper(
    "iftikhar2019",
    ("Masooma Iftikhar", "Qing Wang", "Yu Lin"),
    "Publishing differentially private datasets via stable microaggregation",
    "EDBT",
    2019,
    "inproceedings",
    {"stable-laplace": {"S-MDAV": ""}, "stable": {"stable microaggregation": ""}},
    {
        "insensitive-laplace": {"I-MDAV": 'order = "corners"'},
        "mdav": {"MDAV": ""},
        "laplace": {"epsilon-DP": ""},
    },
    PaperFigure(
        "Figure 5",
        "IL1s",
        {
            "S-MDAV": {
                "method": "stable-laplace",
                "sensitivity": "summed",  # so epsilon is the whole table's, as for the others
                "scale": "from-data",
                "k": _K,
                "epsilon": _EPSILON,
            },
            "I-MDAV": {
                "method": "insensitive-laplace",
                "order": "corners",
                "k": _K,
                "epsilon": _EPSILON,
            },
            "epsilon-DP": {"method": "laplace", "epsilon": _EPSILON},
        },
    ),
)
CORMODE_2013 = Paper(
    "cormode2013",
    (
        "Graham Cormode",
        "Cecilia M. Procopiuc",
        "Entong Shen",
        "Divesh Srivastava",
        "Ting Yu",
    ),
    "Empirical privacy and empirical utility of anonymized data",
    "ICDE Workshops",
    2013,
    "inproceedings",
    {
        "dp-kdtree": {"kd-tree": _LEAVES, "private kd-tree": _LEAVES},
        "dp-quadtree": {"quadtree": _LEAVES, "private quadtree": _LEAVES},
    },
    {"mondrian": {"Mondrian": ""}},
    PaperFigure(
        "Figure 5",
        "COUNT",
        {
            "k-anonymity": {"method": "mondrian", "k": [2, 8, 32, 128]},
            "private kd-tree": {
                "method": "dp-kdtree",
                "levels": "leaves",
                "fit": "none",
                "epsilon": ["0.01", *_EPSILON],
            },
            "private quadtree": {
                "method": "dp-quadtree",
                "levels": "leaves",
                "fit": "none",
                "epsilon": ["0.01", *_EPSILON],
            },
            "quadtree with all levels (ours)": {
                "method": "dp-quadtree",
                "epsilon": ["0.01", *_EPSILON],
            },
        },
        confidential=True,
    ),
    {"pages": "77--82", "doi": "10.1109/ICDEW.2013.6547431"},
)
DOMINGOFERRER_2015 = Paper(
    "domingoferrer2015",
    ("Josep Domingo-Ferrer", "Jordi Soria-Comas"),
    "From t-closeness to differential privacy and vice versa in data anonymization",
    "Knowledge-Based Systems",
    2015,
    "article",
    {
        "bucketization": {"bucketization": ""},
        "kanon-dp": {"stochastic t-closeness": "", "k-anonymity and differential privacy": ""},
        "pram": {"PRAM": ""},
    },
    {},
    PaperFigure(
        "The price of t-closeness, a figure of ours after the construction",
        "SSE / SST",
        {
            "MDAV": {"method": "mdav", "k": _K},
            "t = 1.5": {"method": "bucketization", "t": ["1.5"], "k": _K},
            "t = 2": {"method": "bucketization", "t": ["2"], "k": _K},
            "t = 5": {"method": "bucketization", "t": ["5"], "k": _K},
        },
        confidential=True,
    ),
    {
        "volume": "74",
        "pages": "151--158",
        "doi": "10.1016/j.knosys.2014.11.011",
    },
)
PAPERS = {
    paper.key: paper
    for paper in (SANCHEZ_2014, SORIACOMAS_2017, IFTIKHAR_2019, CORMODE_2013, DOMINGOFERRER_2015)
}


def find_paper(key: str) -> Paper:
    """Look up a paper by its key."""
    if key not in PAPERS:
        guess = explain_name(key) or did_you_mean(key, PAPERS)
        raise InputError(f"No paper named '{key}'.{guess} The papers are: {', '.join(PAPERS)}.")
    return PAPERS[key]


def papers_of(method: str) -> list[Paper]:
    """List the papers that propose a method."""
    return [paper for paper in PAPERS.values() if method in paper.methods]


def named_in_papers(name: str) -> tuple[Paper, str, str] | None:
    """Find what a paper calls by this name: the paper, our method, and its parameters."""
    return next(
        (
            (paper, method, stated)
            for paper in PAPERS.values()
            for method, names in paper.names.items()
            for known, stated in names.items()
            if _spelling(known) == _spelling(name)
        ),
        None,
    )


def explain_name(name: str) -> str:
    """Say what one of the papers means by a name, as a sentence to append to an error."""
    if name in PAPERS:
        paper = PAPERS[name]
        return f" {paper.short} propose {', '.join(map(repr, paper.methods))}."
    named = named_in_papers(name)
    if named is None:
        return ""
    paper, method, stated = named
    return f" {paper.short} use this name for '{method}'{stated and f', with {stated}'}."


def cite_shortly(reference: str) -> str:
    """Cite the first work of a reference in a few words.

    >>> cite_shortly("Hansen and Mukherjee, A polynomial algorithm, TKDE 15 (2003), doi:10/x")
    'Hansen and Mukherjee 2003'
    """
    authors = reference.split(", ", 1)[0]
    year = re.search(r"\((\d{4})\)", reference)
    several = "" if " and " in authors else " et al."
    return f"{authors}{several} {year.group(1) if year else ''}".strip()


def _spelling(name: str) -> str:
    return re.sub(r"[\s_+-]", "", name).casefold()
