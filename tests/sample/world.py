"""Maravel, the country that does not exist: its districts, occupations, conditions and names.

Nothing here was taken from a register or a survey. The figures were chosen to make the people
plausible, and their columns as dependent on one another as in real tables.
"""

from typing import Final, NamedTuple


class District(NamedTuple):
    """A leaf of the region hierarchy.

    Attributes:
        name: the district.
        region: the region that it belongs to.
        thousands: inhabitants, in thousands.
        wealth: mean standing of its households, in tenths of a standard deviation.
        setting: 0 city, 1 town, 2 countryside.
    """

    name: str
    region: str
    thousands: int
    wealth: int
    setting: int


class Occupation(NamedTuple):
    """A leaf of the occupation hierarchy.

    Attributes:
        name: the occupation.
        group: the group that it belongs to.
        pay: yearly pay for a full-time job in mid-career, in thousands.
        spread: standard deviation of the logarithm of pay, in hundredths.
        by_education: relative frequency for none, primary, secondary, tertiary.
        women: relative frequency among women, in percent of that among men.
        by_setting: relative frequency in city, town and countryside.
        style: 1 regular hours, 2 long hours, 3 very long hours.
        from_age: the youngest age at which anybody holds it.
    """

    name: str
    group: str
    pay: int
    spread: int
    by_education: tuple[int, int, int, int]
    women: int
    by_setting: tuple[int, int, int]
    style: int = 1
    from_age: int = 16


class Condition(NamedTuple):
    """A leaf of the condition hierarchy.

    Attributes:
        name: the main long-lasting condition of a person.
        chapter: the chapter that it belongs to.
        by_age: people in ten thousand at ages 0-14, 15-29, 30-44, 45-59, 60-74 and 75+.
        women: frequency among women, in percent of that among men.
        poor: frequency in the poorest third of households, in percent of that in the richest.
        work: chance of being at work, in percent of that of a healthy person.
    """

    name: str
    chapter: str
    by_age: tuple[int, int, int, int, int, int]
    women: int
    poor: int
    work: int


COUNTRY: Final = "Maravel"

DISTRICTS: Final = tuple(
    District(name, region, thousands, wealth, setting)
    for region, districts in {
        "Crownvale": (
            ("Corvane Centre", 210, 9, 0),
            ("Eastquay", 240, 1, 0),
            ("Lanternhill", 180, 12, 0),
            ("Millrace", 260, -4, 0),
            ("Saltgate", 220, -7, 0),
            ("Tamber Heights", 150, 6, 0),
            ("Brackley Fields", 120, 7, 1),
            ("Orrin Vale", 90, 5, 1),
        ),
        "Westerstrand": (
            ("Port Ansel", 190, 0, 0),
            ("Gullhaven", 85, -3, 1),
            ("Kelpmouth", 60, -5, 1),
            ("Sandrey Isles", 22, -4, 2),
            ("Dunwater", 45, -2, 2),
            ("Seldmere", 70, 3, 1),
        ),
        "Northmarch": (
            ("Hallowick", 95, -4, 1),
            ("Frostholm", 40, -6, 2),
            ("Pinereach", 34, -7, 2),
            ("Ironbeck", 80, -8, 1),
            ("Upper Tarn", 18, -5, 2),
            ("Greywater", 28, -6, 2),
        ),
        "Highmoor": (
            ("Stonebridge Tor", 50, -3, 1),
            ("Larkfell", 24, -4, 2),
            ("Heatherby", 30, -1, 2),
            ("Cairnside", 21, -6, 2),
            ("Wolfdale", 16, -5, 2),
        ),
        "Midlund": (
            ("Aldenburg", 230, 3, 0),
            ("Cooper's Cross", 110, -2, 1),
            ("Wheelton", 130, -5, 1),
            ("Barley Green", 55, 1, 2),
            ("Foxhollow", 48, 2, 2),
            ("Thornbury Lea", 90, 4, 1),
            ("Kilnford", 75, -6, 1),
        ),
        "Riverlands": (
            ("Twinwater", 140, 2, 0),
            ("Willowbend", 65, 1, 1),
            ("Otterby", 38, -1, 2),
            ("Reedham Marsh", 26, -4, 2),
            ("Lockstead", 58, 0, 1),
        ),
        "Sunder Coast": (
            ("Marisco", 160, 4, 0),
            ("Amberly Bay", 72, 8, 1),
            ("Cliffend", 44, 3, 2),
            ("Vinemont", 36, 5, 2),
            ("Porthalla", 66, -1, 1),
            ("Lemon Hill", 31, 2, 2),
        ),
        "Easterling": (
            ("Dravenholt", 120, -3, 0),
            ("Hopfield", 62, -5, 1),
            ("Goldacre", 33, -2, 2),
            ("Linden Plain", 42, -4, 2),
            ("Sugarbeck", 27, -7, 2),
            ("Novamill", 54, -6, 1),
        ),
    }.items()
    for name, thousands, wealth, setting in districts
)

NOT_WORKING: Final = "not working"

OCCUPATIONS: Final = (
    Occupation("senior manager", "managers", 92, 52, (1, 4, 22, 75), 55, (13, 10, 6), 2, 30),
    Occupation(
        "shop or hotel manager", "managers", 46, 42, (3, 14, 36, 22), 85, (10, 11, 9), 2, 23
    ),
    Occupation("physician", "professionals", 98, 38, (0, 0, 0, 34), 105, (12, 10, 6), 2, 27),
    Occupation("lawyer", "professionals", 84, 55, (0, 0, 0, 28), 95, (15, 9, 4), 2, 25),
    Occupation("engineer", "professionals", 64, 30, (0, 0, 10, 85), 28, (11, 11, 7), 1, 22),
    Occupation(
        "software developer", "professionals", 67, 34, (0, 1, 16, 80), 32, (17, 8, 4), 1, 20
    ),
    Occupation("teacher", "professionals", 47, 18, (0, 0, 12, 135), 230, (10, 11, 11), 1, 21),
    Occupation("nurse", "health and care", 43, 17, (0, 0, 42, 62), 620, (10, 11, 10), 1, 20),
    Occupation("care worker", "health and care", 26, 18, (30, 60, 62, 12), 520, (9, 11, 12)),
    Occupation("bookkeeper", "office work", 41, 24, (0, 8, 60, 52), 180, (11, 11, 8), 1, 19),
    Occupation("office clerk", "office work", 34, 22, (4, 34, 130, 58), 260, (12, 10, 7)),
    Occupation("customer adviser", "office work", 29, 22, (6, 30, 62, 24), 170, (13, 9, 5)),
    Occupation("sales assistant", "sales and service", 25, 24, (40, 95, 100, 16), 210, (11, 11, 8)),
    Occupation("cook", "sales and service", 26, 22, (46, 56, 42, 4), 80, (12, 10, 8), 2),
    Occupation("waiter", "sales and service", 21, 26, (34, 46, 40, 10), 160, (13, 10, 8)),
    Occupation("hairdresser", "sales and service", 23, 26, (6, 20, 40, 2), 560, (10, 11, 9), 1, 17),
    Occupation(
        "security guard", "sales and service", 29, 16, (20, 36, 30, 3), 25, (14, 9, 4), 2, 18
    ),
    Occupation("electrician", "skilled trades", 42, 24, (2, 28, 84, 8), 5, (9, 11, 11), 1, 17),
    Occupation("builder", "skilled trades", 36, 28, (70, 100, 78, 4), 4, (9, 11, 12), 2),
    Occupation("mechanic", "skilled trades", 37, 24, (22, 60, 72, 4), 5, (8, 12, 11), 1, 17),
    Occupation("machine operator", "plant and transport", 34, 20, (60, 96, 72, 4), 40, (6, 14, 9)),
    Occupation("driver", "plant and transport", 32, 22, (60, 92, 60, 5), 12, (11, 10, 11), 2, 19),
    Occupation("warehouse worker", "plant and transport", 27, 18, (76, 86, 46, 5), 45, (11, 12, 6)),
    Occupation("cleaner", "plant and transport", 22, 18, (130, 92, 26, 3), 430, (12, 10, 8)),
    Occupation("farmer", "land and sea", 31, 62, (50, 46, 36, 9), 45, (0, 5, 60), 3, 18),
    Occupation("forestry worker", "land and sea", 32, 26, (26, 26, 16, 3), 10, (0, 3, 34), 1, 17),
    Occupation("fisher", "land and sea", 29, 50, (30, 24, 10, 1), 8, (1, 5, 22), 3, 17),
)

NO_CONDITION: Final = "none"

CONDITIONS: Final = (
    Condition("hypertension", "circulatory", (1, 32, 188, 627, 1085, 1178), 90, 125, 97),
    Condition("heart disease", "circulatory", (3, 5, 30, 139, 397, 713), 55, 150, 62),
    Condition("stroke", "circulatory", (1, 2, 11, 46, 143, 322), 85, 145, 38),
    Condition("asthma", "respiratory", (640, 416, 315, 231, 174, 130), 115, 130, 95),
    Condition("chronic bronchitis", "respiratory", (2, 6, 30, 119, 260, 322), 85, 220, 68),
    Condition("type 1 diabetes", "metabolic", (22, 34, 36, 30, 19, 9), 95, 100, 92),
    Condition("type 2 diabetes", "metabolic", (1, 14, 82, 310, 595, 608), 80, 180, 88),
    Condition("thyroid disorder", "metabolic", (6, 48, 128, 178, 192, 180), 480, 95, 97),
    Condition("depression", "mental", (25, 336, 382, 350, 205, 186), 175, 175, 66),
    Condition("anxiety disorder", "mental", (90, 384, 300, 211, 118, 93), 180, 140, 82),
    Condition("substance use disorder", "mental", (1, 104, 112, 79, 28, 6), 38, 240, 48),
    Condition("dementia", "mental", (0, 0, 1, 5, 68, 713), 120, 115, 4),
    Condition("back pain", "musculoskeletal", (8, 152, 390, 502, 384, 260), 110, 165, 78),
    Condition("osteoarthritis", "musculoskeletal", (1, 8, 52, 251, 546, 713), 155, 125, 80),
    Condition("rheumatoid arthritis", "musculoskeletal", (5, 14, 41, 73, 93, 81), 260, 115, 72),
    Condition("breast cancer", "neoplasms", (0, 2, 34, 86, 118, 112), 9000, 85, 70),
    Condition("prostate cancer", "neoplasms", (0, 0, 2, 33, 186, 260), 0, 90, 76),
    Condition("bowel cancer", "neoplasms", (0, 2, 9, 33, 81, 118), 80, 110, 60),
    Condition("migraine", "nervous system", (110, 264, 285, 198, 74, 31), 270, 105, 94),
    Condition("epilepsy", "nervous system", (62, 50, 44, 38, 41, 48), 95, 130, 64),
    Condition("peptic ulcer", "digestive", (3, 20, 45, 63, 74, 74), 80, 150, 94),
    Condition("bowel inflammation", "digestive", (12, 44, 49, 40, 31, 25), 100, 95, 88),
    Condition("hepatitis", "infectious", (2, 10, 24, 32, 21, 11), 65, 230, 82),
    Condition("HIV infection", "infectious", (1, 10, 18, 17, 6, 1), 30, 190, 90),
    Condition("eczema", "skin", (780, 232, 150, 99, 87, 81), 115, 90, 99),
)

WAVES: Final = ("wave 1", "wave 2", "wave 3", "wave 4")
SEXES: Final = ("male", "female")
EDUCATIONS: Final = ("none", "primary", "secondary", "tertiary")
MARITAL: Final = ("single", "cohabiting", "married", "divorced", "widowed")

_MEN: Final = """
    Adam Albin Aldo Anton Aron Basil Bela Bruno Caspar Cyril Damian Dario David Edgar Elias
    Emil Enzo Erik Felix Florian Gabor Georg Henrik Hugo Ivan Jakob Janos Jonas Julian Karol
    Kasimir Konrad Lars Laszlo Leon Linus Lucian Magnus Marek Martin Matteo Milan Nils Noah
    Oliver Oscar Otto Pavel Petr Rafael Roman Rune Samuel Silas Stefan Tibor Tobias Viktor
    Vilmos Zoltan
"""
_WOMEN: Final = """
    Ada Agnes Alba Alma Amalia Anja Anna Astrid Bianca Birgit Carla Cecilia Clara Dagmar
    Daria Edith Elena Elin Elsa Emilia Erika Esther Eva Flora Freya Greta Hanna Hedda Helena
    Ida Ilona Ines Ingrid Irma Isolde Johanna Judit Julia Karin Katja Lena Lidia Linnea Livia
    Magda Maja Maria Marta Mila Mira Nadia Nina Nora Olga Petra Renata Rosa Sofia Tilda Vera
"""
_BEGINNINGS: Final = """
    Alder Brin Cor Dun Elm Fen Gar Hol Iver Kel Lor Mar Nor Osk Pel Quar Ros Sel Tor Ulf Var
    Wen Yar Zel
"""
_ENDINGS: Final = "mere low bourne sen wick grave tide kin ridge hurst vold marsh"

GIVEN_NAMES: Final = (tuple(_MEN.split()), tuple(_WOMEN.split()))
"""As many for men as for women, by the code of the sex."""

SURNAMES: Final = tuple(start + end for end in _ENDINGS.split() for start in _BEGINNINGS.split())


def hierarchies() -> dict[str, list[tuple[str, ...]]]:
    """Return the three hierarchies by column: one row per leaf, leaf first, root last."""
    return {
        "region": [(d.name, d.region, COUNTRY) for d in DISTRICTS],
        "occupation": [
            *((o.name, o.group, "any occupation") for o in OCCUPATIONS),
            (NOT_WORKING, "no occupation", "any occupation"),
        ],
        "condition": [
            *((c.name, c.chapter, "any condition") for c in CONDITIONS),
            (NO_CONDITION, "no condition", "any condition"),
        ],
    }
