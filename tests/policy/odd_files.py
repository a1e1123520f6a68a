"""Odd but ordinary files, made without sight of the recogniser; answers as in `first_files`.

Headers say little here: what a column is stands in its cells and in what depends on it. Check
digits are right. The last two files are controls: one number aside, nothing in them names a person.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from tests.policy.first_files import Columns, Dialect, FirstFile, Maker

FIRST = {
    "en": "Olivia Jack Amelia Harry Isla Noah Grace Leo Priya Mohammed Chloe Daniel Ruth Owen",
    "de": "Anna Lukas Sabine Jürgen Petra Uwe Leonie Finn Aylin Heike Jonas Gisela Torsten",
    "es": "Lucía Javier Carmen Andrés María José Pilar Álvaro Inés Nuria Iker Rocío Gonzalo",
    "it": "Giulia Marco Francesca Luca Chiara Matteo Elena Davide Sara Paolo Ilaria Nicolò",
    "br": "Ana João Beatriz Thiago Larissa Caio Fernanda Rafael Luana Márcio Vitória Edson",
    "pl": "Zofia Jakub Agnieszka Łukasz Małgorzata Piotr Katarzyna Paweł Ewa Krzysztof Oliwia",
    "nl": "Sanne Daan Femke Bram Lotte Sem Fatima Joost Anouk Ruben Marloes Thijs",
    "el": "Μαρία Γιώργος Ελένη Δημήτρης Κατερίνα Νίκος Σοφία Κώστας Ιωάννα Παναγιώτης",
    "ar": "محمد فاطمة أحمد مريم عبدالله نورة خالد عائشة يوسف ليلى سلطان هند",
}
FAMILY = {
    "en": "Ashton Blackwood Carver Denholm Ellison Fairley Greenwell Hartford Langley Marston Okafor Patel Whitby Nguyen Rees",
    "de": "Altmann Bergmeier Brandner Eichinger Feldhoff Kirchner Lindemann Neubauer Rothler Steiner Waldmann Yilmaz Ziegler",
    "es": "Aguirre Barrios Calderón Delgado Escobar Fuentes Galván Herrero Ibáñez Montes Navarro Ortega Salgado Vega",
    "it": "Barbieri Castelli Fabbri Galletti Lombardi Mancini Pellegrini Rizzo Santoro Testa Vitale Zanetti Bruno",
    "br": "Almeida Barbosa Cardoso Dias Esteves Figueiredo Guimarães Lopes Machado Nogueira Queiroz Teixeira",
    "pl": "Nowak Wójcik Kamińska Lewandowski Zieliński Szymańska Woźniak Dąbrowski Kozłowska Mazur Krawczyk",
    "nl": "Dijkstra Groenendijk Haanstra Hoekstra Kuipers Molenaar Postma Schilder Veldkamp Zandstra Brouwer",
    "el": "Παπαδόπουλος Νικολάου Γεωργίου Δημητρίου Καραγιάννης Βασιλείου Οικονόμου Μακρή Αντωνίου Ιωαννίδης",
    "ar": "الهاشمي المنصوري الشامسي القحطاني الحربي العتيبي النجار البلوشي الزعابي السعدي الكعبي",
}
JAPANESE = "佐藤サトウ 鈴木スズキ 高橋タカハシ 田中タナカ 伊藤イトウ 渡辺ワタナベ 山本ヤマモト 中村ナカムラ 小林コバヤシ 加藤カトウ 吉田ヨシダ 斎藤サイトウ"
GIVEN = "花子ハナコ 太郎タロウ 健一ケンイチ 美咲ミサキ 陽菜ヒナ 翔太ショウタ 恵子ケイコ 大輔ダイスケ 由美ユミ 直樹ナオキ 真理マリ 拓也タクヤ"
RUSSIAN = (
    "Иванов Смирнов Кузнецов Попов Соколов Лебедев Козлов Новиков Морозов Волков Зайцев Павлов"
)
ICD = "I10|E11.9|J45.0|F32.1|M54.5|K21.0|S72.0|C50.9|N18.3|G40.2"


Spread = Callable[[Iterable[Any]], list[Any]]


class G(Maker):
    """Draws columns by short patterns."""

    def one(self, choices: str) -> list[str]:
        return self.pick(*choices.split("|"))

    def ints(self, low: int, high: int) -> list[int]:
        return [int(v) for v in self.rng.integers(low, high, self.rows)]

    def mask(self, *patterns: str) -> list[str]:
        """Fill patterns: # is a digit, @ a capital letter, * a hexadecimal digit."""
        sets = {"#": "0123456789", "@": "ABCDEFGHJKLMNPRSTVWXY", "*": "0123456789abcdef"}

        def fill(c: str) -> str:
            return sets[c][self.rng.integers(len(sets[c]))] if c in sets else c

        return ["".join(map(fill, str(p))) for p in self.rng.choice(patterns, self.rows)]

    def serial(self, start: int, span: int = 9) -> list[int]:
        """Numbers that differ, in no order."""
        return [start + int(v) for v in self.rng.permutation(self.rows * span)[: self.rows]]

    def marked(self, values: Iterable[Any], shares: Any = None, **more: float) -> list[Any]:
        """Marks in place of some values; `blank` is an empty cell."""
        out: list[Any] = list(values)
        for mark, share in {**(shares or {}), **more}.items():
            gone, lost = self.rng.random(self.rows) < share, None if mark == "blank" else mark
            out = [lost if g else v for g, v in zip(gone, out, strict=True)]
        text = any(isinstance(v, str) for v in out)
        return [v if v is None or not text else str(v) for v in out]

    def heavy(self, middle: float, sigma: float = 0.6, digits: int = 2, point: str = ".") -> Any:
        """Amounts with a long tail; whole numbers where there are no digits."""
        drawn = middle * np.exp(self.rng.normal(0, sigma, self.rows))
        if not digits:
            return [int(v) for v in drawn]
        return [f"{v:.{digits}f}".replace(".", point) for v in drawn]

    def moments(self, first: str, last: str) -> list[dt.datetime]:
        start, end = dt.datetime.fromisoformat(first), dt.datetime.fromisoformat(last)
        span = int((end - start).total_seconds())
        return [start + dt.timedelta(seconds=int(s)) for s in self.rng.integers(0, span, self.rows)]

    def names(self, language: str, form: str = "{0} {1}") -> list[str]:
        first, family = FIRST[language].split(), FAMILY[language].split()
        drawn = self.rng.choice(first, self.rows), self.rng.choice(family, self.rows)
        return each(lambda f, n: form.format(f, n, f[0]), *drawn)

    def staff(self, count: int, language: str, form: str = "{0} {1}") -> list[str]:
        """A few people named in all rows."""
        firsts, families = FIRST[language].split(), FAMILY[language].split()
        all_of_them = {form.format(f, n, f[0]) for f in firsts for n in families}
        few = self.rng.permutation(sorted(all_of_them))[:count]
        return [str(v) for v in self.rng.choice(few, self.rows)]


def pair(rows: int, persons: int, seed: int) -> tuple[G, G, Spread]:
    """A maker of rows, a maker of persons, and what gives each row its person's value."""
    rows_maker, persons_maker = G("en", rows, seed), G("en", persons, seed + 1000)
    who = rows_maker.rng.integers(0, persons, rows)
    who[:persons] = np.arange(persons)
    rows_maker.rng.shuffle(who)
    return rows_maker, persons_maker, spread(who)


def spread(who: Any) -> Spread:
    def of(values: Iterable[Any]) -> list[Any]:
        held = list(values)
        return [held[i] for i in who]

    return of


def nth(groups: Iterable[Any]) -> list[int]:
    """Which row of its group each row is, from one."""
    seen: Counter[Any] = Counter()
    return [seen.update([g]) or seen[g] for g in groups]


def each(make: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
    return [make(*cells) for cells in zip(*columns, strict=True)]


def glue(form: str, *columns: Iterable[Any]) -> list[str]:
    return each(form.format, *columns)


def shown(moments: Iterable[dt.datetime], form: str) -> list[str]:
    return [m.strftime(form) for m in moments]


def later(moments: Iterable[Any], days: Iterable[float], form: str) -> list[str]:
    return each(lambda m, d: (m + dt.timedelta(days=float(d))).strftime(form), moments, days)


def luhn(body: str) -> str:
    twice = [int(c) * (2 - i % 2) for i, c in enumerate(reversed(body))]
    return body + str(-sum(v // 10 + v % 10 for v in twice) % 10)


def iban(land: str, account: str) -> str:
    number = "".join(str(int(c, 36)) for c in f"{account}{land}00")
    return f"{land}{98 - int(number) % 97:02d}{account}"


def weighted(body: str, weights: Iterable[int]) -> int:
    return sum(int(c) * w for c, w in zip(body, weights, strict=True))


def npi(body: str) -> str:
    return luhn(f"80840{body}")[5:]


def afm(body: str) -> str:
    return f"{body}{weighted(body, (2**n for n in range(8, 0, -1))) % 11 % 10}"


def snils(body: str) -> str:
    check = weighted(body, range(9, 0, -1)) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {check:02d}"


def social_number(area: str, born: dt.date, letter: str, serial: str) -> str:
    """A German pension number."""
    head = f"{area}{born:%d%m%y}"
    digits = f"{head}{ord(letter) - 64:02d}{serial}"
    products = each(int.__mul__, map(int, digits), (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1))
    return f"{head}{letter}{serial}{sum(v // 10 + v % 10 for v in products) % 10}"


def cpf(body: str) -> str:
    for n in (10, 11):
        body += str(weighted(body, range(n, 1, -1)) * 10 % 11 % 10)
    return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"


def dni(body: str) -> str:
    return f"{body}{'TRWAGMYFPDXBNJZSQVHLCKE'[int(body) % 23]}"


def pesel(born: dt.date, serial: str, female: int) -> str:
    month = born.month + 20 * (born.year >= 2000)
    sex = int(serial[3]) // 2 * 2 + (not female)
    body = f"{born:%y}{month:02d}{born:%d}{serial[:3]}{sex}"
    return f"{body}{-weighted(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10}"


def fiscal_code(name: str, born: dt.date, place: str, female: int) -> str:
    """An Italian codice fiscale, from a first and a family name."""
    first, family = ("".join(c for c in n.upper() if c.isascii()) for n in name.split())

    def three(word: str, *, skip: bool) -> str:
        hard = [c for c in word if c not in "AEIOU"]
        hard = [hard[0], *hard[2:4]] if skip and len(hard) > 3 else hard
        return ("".join(hard) + "".join(c for c in word if c in "AEIOU") + "XXX")[:3]

    body = three(family, skip=False) + three(first, skip=True)
    body += f"{born:%y}{'ABCDEHLMPRST'[born.month - 1]}{born.day + 40 * female:02d}{place}"
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)  # fmt: skip
    rank = [int(c) if c.isdigit() else ord(c) - 65 for c in body]
    return body + chr(65 + sum(v if i % 2 else odd[v] for i, v in enumerate(rank)) % 26)


def geohash(lat: float, lon: float) -> str:
    """Seven characters: 35 bits, of the longitude and the latitude in turn."""
    wide, high = f"{int((lon + 180) / 360 * 2**18):018b}", f"{int((lat + 90) / 180 * 2**17):017b}"
    bits = "".join(a + b for a, b in zip(wide, f"{high} ", strict=True)).strip()
    alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
    return "".join(alphabet[int(bits[i : i + 5], 2)] for i in range(0, 35, 5))


def stays() -> Columns:
    g, p, of = pair(1200, 520, 301)
    came, days = g.moments("2022-01-01", "2023-11-20"), g.whole(6, 4, 1, 60)
    return {
        "episodio": ("id", [f"E23-{v:06d}" for v in g.serial(1000)]), "nhc_ref": ("id unit", of(p.serial(4310007))),
        "fnac": ("qi date %d/%m/%Y", of(p.days("1931-01-01", "2015-01-01", "%d/%m/%Y"))), "sx": ("qi nominal", of(p.one("V|M"))), "cp_dom": ("qi|id nominal", of(p.one("08025|46009|01005|50002|28013|41010|07003"))),
        "aviso_a": ("id", of(p.mask("+34 6## ### ###", "6########", "+34 71# ## ## ##"))), "f_ing": ("qi|conf date %d/%m/%Y", shown(came, "%d/%m/%Y")),
        "h_ing": ("qi|id|conf|other", shown(came, "%H:%M")), "f_alta": ("qi|conf date %d/%m/%Y", later(came, days, "%d/%m/%Y")),
        "dias": ("conf|qi numeric whole", days), "unidad": ("qi|conf|other nominal", g.one("UCI|Medicina Interna|Cirugía|Neumología|Paritorio")), "dx": ("conf|qi nominal", g.one(ICD)), "resp": ("id", g.staff(25, "es", "{1}, {0}")),
        "peso": ("qi|conf numeric missing=-1", g.marked(g.heavy(74, 0.2, 1, ","), {"-1": 0.06})), "reing_30": ("conf|qi nominal", g.one("S|N")), "coste": ("conf numeric", g.heavy(3900, 0.5, 2, ",")),
    }  # fmt: skip


def household_survey() -> Columns:
    g, h, of = pair(1400, 610, 302)
    home = np.sort(of(range(610)))
    line, at = nth(home), spread(home)
    logs = at(h.serial(2200131, 3))
    return {
        "idlog": ("id household", logs), "noi": ("other|qi|id nominal|ordinal|numeric", line), "ident": ("id unit", glue("{}{:02d}", logs, line)),
        "coef": ("id weight", at(h.heavy(812, 0.4, 4))), "str": ("qi|other|id|conf nominal", at(h.one("11|12|21|22|31"))),
        "dep": ("qi nominal", at(h.one("01|2A|59|75|93|974"))), "typlog": ("qi|conf|other nominal", at(h.one("maison|appartement|foyer"))), "npers": ("qi numeric|ordinal|nominal", [int(n) for n in np.bincount(home)[home]]),
        "revmen": ("conf numeric whole missing=-99", at(h.marked(h.heavy(2900, 0.5, 0), {"-99": 0.05}))), "ag": ("qi numeric whole", g.whole(41, 22, 0, 97)),
        "s": ("qi nominal", g.one("1|2")), "lienprm": ("qi|conf nominal", each(lambda n, v: "00" if n == 1 else v, line, g.one("01|02|03|10|31"))),
        "matri": ("qi|conf nominal", g.one("1|2|3|4")), "dip": ("qi|conf nominal|ordinal", g.one("0|1|2|3|4|5|6")),
        "santgen": ("conf|qi ordinal|nominal|numeric", g.one("1|2|3|4|5")), "hh_trav": ("qi|conf numeric whole", g.marked(g.whole(34, 9, 1, 80), blank=0.45)),
        "dtenq": ("qi|other|conf date %Y-%m-%d", at(h.days("2022-03-01", "2022-06-30", "%Y-%m-%d"))),
    }  # fmt: skip


def web_shop() -> Columns:
    g, p, of = pair(1400, 480, 303)
    names = p.names("de", "{0}.{1}")
    plain = str.maketrans({"ü": "ue", "ö": "oe", "ä": "ae"})
    mail = glue("{}{}@{}", [n.lower().translate(plain) for n in names], range(480), p.one("web.de|gmail.com|gmx.net"))  # fmt: skip
    return {
        "nr": ("id", [f"{v}" for v in g.serial(7100001, 2)]), "x1": ("id unit", of([f"K-{v}" for v in p.serial(104233)])), "f1": ("id", [f"neu.{m}" if r < 0.1 else m for m, r in zip(of(mail), g.rng.random(1400), strict=True)]),
        "kontakt": ("id", g.marked(of(p.mask("+49 151 ########", "0176 ########", "030/#######", "+49 (0)40 ######")), blank=0.1)),
        "x2": ("id", [luhn(b) for b in of(p.mask("4##############", "53#############"))]), "x3": ("id", g.mask("84.1##.4#.1##", "93.22#.1#.1##", "2003:e#:37**:****::*", "178.3.1##.20#")),
        "an": ("id", of(glue("{} {}{}", p.one("Lindenweg|Hauptstr.|Am Markt|Goethestraße|Schulgasse|Kirchplatz"), p.ints(1, 140), p.one("|||a|b")))),
        "z": ("qi|id nominal", of(p.one("01067|04103|10115|20095|50667|80331"))), "ort": ("qi nominal", of(p.one("Dresden|Leipzig|Berlin|Hamburg|Köln|München"))),
        "am": ("qi|conf date %Y-%m-%dT%H:%M:%S", shown(g.moments("2024-01-02", "2024-12-20"), "%Y-%m-%dT%H:%M:%S")),
        "artikel": ("conf|qi|other nominal", g.one("Wanderschuh Jonas 42|Regenjacke Lea|Zelt Tundra 3|Trinkflasche 0,7 l|Stirnlampe X200")),
        "menge": ("conf|qi|other numeric|ordinal|nominal", g.whole(1.6, 1.1, 1, 9)), "eur": ("conf|qi|other numeric", g.heavy(38, 0.7)),
        "art": ("qi|conf|other nominal", g.one("Karte|Rechnung|PayPal|Vorkasse")), "sterne": ("conf|qi|other ordinal|numeric", g.marked(g.ints(1, 6), blank=0.4)),
    }  # fmt: skip


def school() -> Columns:
    g = G("en", 560, 304)
    return {
        "رقم_الطالب": ("id unit", g.serial(20210034)), "اسم الطالب": ("id", g.names("ar", "{0} {1}")), "ولي الأمر": ("id", g.names("ar", "{0} {1}")), "هاتف": ("id", g.mask("+971 50 ### ####", "+971 55 ### ####", "052#######")),
        "تاريخ الميلاد": ("qi date %Y/%m/%d", g.days("2009-01-01", "2016-12-30", "%Y/%m/%d")), "الجنس": ("qi nominal", g.one("ذكر|أنثى")),
        "الجنسية": ("qi|conf nominal", g.one("الإمارات|مصر|الأردن|الهند|سوريا")), "الصف": ("qi|conf nominal|ordinal|numeric", g.ints(3, 10)),
        "المعلم": ("id", g.staff(18, "ar", "أ. {0} {1}")), "teacher_en": ("id", g.staff(9, "en", "Ms {1}")), "المدرسة": ("other|qi|conf nominal", ["مدرسة النور"] * 560),
        "الرياضيات": ("conf|qi numeric whole missing=-1", g.marked(g.whole(68, 15, 20, 100), {"-1": 0.05})),
        "اللغة العربية": ("conf|qi numeric whole", g.whole(73, 13, 20, 100)), "الغياب": ("conf|qi numeric whole", g.whole(6, 5, 0, 45)),
        "ملاحظات": ("id", glue("تحدثت مع {} عن {}", g.names("ar"), g.one("الغياب المتكرر|الواجبات|النظارة الجديدة|موعد الطبيب"))),
    }  # fmt: skip


def payroll() -> Columns:
    g = G("de", 900, 305)
    born = g.moments("1958-01-01", "2004-01-01")
    gross = [round(v, 2) for v in 3600 * np.exp(g.rng.normal(0, 0.35, 900))]
    net = [round(v * f, 2) for v, f in zip(gross, g.rng.uniform(0.58, 0.72, 900), strict=True)]
    return {
        "pn": ("id unit", g.serial(50211)), "ma": ("id", g.names("de", "{1}, {0}")), "sv": ("id", [social_number(a, b, n, s) for a, b, n, s in zip(g.one("12|53|65|13"), born, g.one("A|B|K|M|S"), g.mask("##"), strict=True)]),
        "konto": ("id", [iban("DE", a) for a in g.mask("37040044##########", "10050000##########")]), "bic": ("qi|conf|other|id nominal", g.one("COBADEFFXXX|BELADEBEXXX")), "geb": ("qi date %d.%m.%Y", shown(born, "%d.%m.%Y")),
        "g": ("qi nominal", g.one("m|w|d")), "eintr": ("qi|conf date %d.%m.%Y", g.days("1998-01-01", "2023-12-01", "%d.%m.%Y")),
        "kst": ("qi|conf|other nominal", g.one("4100|4110|4200|4300|9000")), "tg": ("qi|conf nominal|ordinal", g.one("E6|E8|E9b|E11|E13")),
        "stkl": ("conf|qi nominal", g.one("1|2|3|4|5|6")), "kfb": ("conf|qi numeric|ordinal|nominal", g.one("0,0|0,5|1,0|1,5|2,0")),
        "kist": ("conf|qi nominal missing?=--", g.one("rk|ev|--")), "wstd": ("qi|conf numeric|ordinal", g.one("19,5|30|35|39")),
        "brutto": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in gross]), "bonus": ("conf numeric", g.marked(g.heavy(2400, 0.6, 2, ","), blank=0.62)),
        "netto": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in net]), "kk": ("qi|conf nominal", g.one("AOK|TK|Barmer|DAK")),
    }  # fmt: skip


def long_trial() -> Columns:
    rows, visits = 760, 8
    g, p = G("en", rows, 306), G("en", rows // visits, 1306)
    who, visit = np.divmod(np.arange(rows), visits)
    of, site = spread(who), p.one("101|102|103|104")
    begun = p.moments("2020-02-01", "2021-06-01")
    day = visit * 28 - 14 * (visit == 0) + g.rng.integers(-3, 4, rows)
    crp = ["<4.0" if float(v) < 4 else v for v in g.heavy(9, 0.9, 1)]
    return {
        "pt": ("id unit", of([f"{s}-{i:03d}" for i, s in enumerate(site)])), "ini": ("id|qi nominal", of(p.mask("@-@", "@@@"))), "st": ("qi|conf|other nominal", of(site)),
        "inv": ("id", of([{"1": "Dr Hughes", "2": "Dr Okafor", "3": "Prof. Lindqvist", "4": "Dr Maria Rees"}[s[2]] for s in site])),
        "tx": ("other|qi|conf nominal", of(p.one("A|B"))), "age": ("qi numeric whole", of(p.whole(54, 12, 18, 84))), "sx": ("qi nominal", of(p.one("F|M"))),
        "vis": ("qi|conf|other nominal|ordinal", [f"Week {4 * v}" if v else "Screening" for v in visit]),
        "vn": ("qi|conf|other ordinal|numeric", [int(v) + 1 for v in visit]), "stdy": ("qi|conf|other numeric|ordinal whole", [int(v) for v in day]),
        "dt": ("qi|conf date %d-%b-%Y", later(of(begun), day, "%d-%b-%Y")), "crp": ("conf numeric", crp),
        "alt": ("conf numeric whole missing=ND", g.marked(g.heavy(31, 0.5, 0), ND=0.05)), "hb": ("conf numeric", g.marked(g.decimals(13.4, 1.4, 1), blank=0.06)),
        "troponin": ("conf numeric", ["<0.01" if float(v) < 0.01 else v for v in g.heavy(0.02, 0.8, 2)]), "vas": ("conf|qi numeric whole", g.whole(42, 22, 0, 100)),
        "ae": ("conf|qi nominal", g.marked(g.one("headache|nausea|rash|fatigue"), blank=0.7)), "nae": ("conf|qi numeric|ordinal", g.whole(0.8, 1.1, 0, 6)),
    }  # fmt: skip


def bikes() -> Columns:
    g, p, of = pair(2000, 420, 307)
    start, seconds = g.moments("2023-04-01", "2023-10-30"), g.heavy(760, 0.6, 0)
    near = g.rng.normal(0, 0.02, (4, 2000))
    corners = "Main St & 3rd Ave|Oak St & Park Blvd|Union Sq|Harbor Terminal|Museum|Cedar Ave & 9th St|City Hall"
    form = "%Y-%m-%d %H:%M:%S"
    return {
        "r": ("id", g.mask("****************")), "u": ("id unit", of(p.mask("************"))), "t0": (f"qi|conf date {form}", shown(start, form)),
        "t1": (f"qi|conf date {form}", later(start, np.array(seconds) / 86400, form)), "y0": ("id|qi numeric", [f"{40.73 + v:.6f}" for v in near[0]]),
        "x0": ("id|qi numeric", [f"{-73.98 + v:.6f}" for v in near[1]]), "y1": ("id|qi numeric", [f"{40.73 + v:.6f}" for v in near[2]]),
        "x1": ("id|qi numeric", [f"{-73.98 + v:.6f}" for v in near[3]]), "gh": ("id|qi nominal", each(geohash, 40.73 + near[0], -73.98 + near[1])),
        "dock": ("qi|conf|other nominal", g.one(corners)), "dock_to": ("qi|conf|other nominal", g.one(corners)),
        "bike": ("qi|id|other|conf nominal", [str(v) for v in g.ints(14500, 14950)]), "plan": ("qi|conf|other nominal", of(p.one("annual|day pass|student"))),
        "yob": ("qi numeric|ordinal|nominal whole", of(p.marked(p.whole(1985, 11, 1945, 2006), blank=0.15))), "g": ("qi nominal", of(p.one("0|1|2"))),
        "m": ("conf|qi|other numeric whole", g.heavy(2100, 0.6, 0)), "s": ("conf|qi|other numeric whole", seconds),
    }  # fmt: skip


def likert() -> Columns:
    g = G("en", 700, 308)
    items: Columns = {
        f"q{n:03d}": ("conf|other ordinal|numeric missing=99", g.marked(g.whole(2 + n % 3 * 0.7, 1.3, 1, 5), {"99": 0.02}))
        for n in range(1, 121)
    }  # fmt: skip
    return {
        "resp": ("id unit", [str(v) for v in g.serial(100001)]), "age_grp": ("qi ordinal|nominal", g.one("18-29|30-44|45-59|60+")), "gen": ("qi nominal", g.one("1|2|3")),
        **items, "minutes": ("other|qi|conf numeric", g.heavy(14, 0.4, 1)),
    }  # fmt: skip


def sixty() -> Columns:
    g = G("nl", 60, 309)
    return {
        "Lid": ("id unit", list(range(1, 61))), "Naam": ("id", g.names("nl")), "Geb.": ("qi date %d-%m-%Y", g.days("1948-01-01", "2012-01-01", "%d-%m-%Y")),
        "M/V": ("qi nominal", g.one("m|v")), "Woont in": ("qi nominal", g.one("Utrecht|Zwolle|Breda|Emmen|Leiden|Goes")),
        "Bereikbaar": ("id", g.mask("06-2#######", "020-3######", "030-2######")), "Rekening": ("id", [iban("NL", a) for a in g.mask("ABNA0#########", "INGB0#########")]),
        "Ziekte": ("conf nominal", g.one("EDS|Marfan|PKU|CF")), "Sinds": ("conf|qi numeric|ordinal whole", g.whole(2009, 6, 1990, 2023)),
        "Bij nood bellen": ("id", g.names("nl", "{0} {1} (partner)")), "Contributie": ("conf|qi|other numeric|ordinal|nominal", g.one("25|35|50")), "Gewicht": ("qi|conf numeric", g.decimals(72, 13, 1)),
    }  # fmt: skip


def taxpayers() -> Columns:
    g = G("de", 3000, 310)
    wage, own, gains = g.heavy(68000, 0.6, 0), g.heavy(9000, 1.2, 0), g.heavy(700, 1.5, 0)
    own = [v if r < 0.15 else 0 for v, r in zip(own, g.rng.random(3000), strict=True)]
    less = g.heavy(11000, 0.4, 0)
    base = [max(a + b + c - d, 0) for a, b, c, d in zip(wage, own, gains, less, strict=True)]
    return {
        "stp": ("id unit", g.serial(310000017, 70)), "jg": ("qi numeric|ordinal|nominal whole", g.whole(1971, 16, 1928, 2004)),
        "kt": ("qi nominal", g.one("ZH|BE|LU|SG|GE|TI|VD")), "bfs": ("qi nominal", g.one("261|351|1061|3203|6621|5192|5586|230")),
        "zivst": ("qi|conf nominal", g.one("1|2|3|4")), "kd": ("qi|conf numeric|ordinal|nominal", g.whole(0.9, 1.1, 0, 6)),
        "konf": ("conf|qi nominal", g.one("rk|ref|ohne")), "lohn": ("conf numeric whole", wage), "selbst": ("conf numeric whole", own),
        "ertrag": ("conf numeric whole", gains), "abzug": ("conf numeric whole", less), "stb_eink": ("conf numeric whole", base),
        "verm": ("conf numeric whole", g.heavy(140000, 1.4, 0)), "steuer": ("conf numeric", [f"{v * 0.11:.2f}" for v in base]),
        "eingang": ("qi|other|conf date %d.%m.%Y", g.days("2023-02-01", "2023-10-30", "%d.%m.%Y")), "bearb": ("qi|other|id nominal", g.one("KM|SF|RT|LB")),
    }  # fmt: skip


def duplicates() -> Columns:
    g, p, of = pair(900, 310, 311)
    number, sex, age = of(p.serial(52000)), of(p.one("1|2")), of(p.whole(46, 17, 18, 92))
    day, cost = g.days("2023-01-01", "2023-12-30", "%Y-%m-%d"), g.heavy(210)
    town = of(p.one("Leeds|York|Hull|Ripon"))
    code = {"Leeds": "E08000035", "York": "E06000014", "Hull": "E06000010", "Ripon": "E07000165"}
    columns: Columns = {
        "k1": ("id unit", number), "k2": ("id", [f"P{v}/A" for v in number]), "k3": ("id", of(p.mask("********************************"))),
        "k4": ("id", of(glue("{} {} {}", p.names("en", "{0}"), p.mask("@. @. @."), p.names("en", "{1}")))), "k5": ("qi numeric whole", age), "k6": ("qi numeric whole", age), "k7": ("qi nominal", sex),
        "k8": ("qi nominal", ["male" if s == "1" else "female" for s in sex]), "k9": ("qi nominal", town), "k10": ("qi nominal", [code[t] for t in town]),
        "k11": ("qi|conf date %Y-%m-%d", day), "k12": ("qi|conf date %Y-%m-%d", day), "k13": ("conf nominal|ordinal", g.one("mild|moderate|severe")), "k14": ("conf numeric", cost),
        "k15": ("conf numeric", cost), "k16": ("other|qi|conf nominal|numeric|ordinal", [1] * 900),
    }  # fmt: skip
    again = g.rng.permutation(np.concatenate([np.arange(900), g.rng.integers(0, 900, 60)]))
    return {n: (answer, [values[i] for i in again]) for n, (answer, values) in columns.items()}


def bank_accounts() -> Columns:
    g, p, of = pair(1300, 820, 312)
    joint = g.rng.random(1300) < 0.2
    balance = g.rng.normal(0, 1, 1300) * 900 + np.exp(g.rng.normal(7, 1.5, 1300))
    return {
        "acct": ("id", g.mask("########")), "full": ("id", [iban("GB", a) for a in g.mask("NWBK6016##########", "BARC2012##########")]),
        "party": ("id unit", of([f"{v:010d}" for v in p.serial(77120)])), "sc": ("qi|id|other|conf nominal", g.one("60-16-13|20-12-44|60-16-21")),
        "holder": ("id", of(glue("{} {}", p.one("MR|MRS|MS|DR"), [n.upper() for n in p.names("en", "{2} {1}")]))), "second": ("id", [n if j else None for n, j in zip(g.names("en", "MRS {2} {1}"), joint, strict=True)]),
        "born": ("qi date %d/%m/%Y", of(p.days("1935-01-01", "2005-06-01", "%d/%m/%Y"))), "pc": ("qi|id nominal", of(p.mask("LS# #AB", "YO1# #HD", "HU# #NL"))),
        "type": ("qi|conf|other nominal", g.one("current|ISA|saver|mortgage")), "open": ("qi|conf date %d/%m/%Y", g.days("1996-01-01", "2023-12-01", "%d/%m/%Y")),
        "bal": ("conf numeric", [f"{v:.2f}" for v in balance]), "lim": ("conf|qi numeric|ordinal whole", [100 * v for v in g.ints(0, 60)]),
        "in12": ("conf numeric", g.heavy(24000, 0.7)), "last": ("qi|conf date %d/%m/%Y", g.days("2023-10-01", "2024-01-30", "%d/%m/%Y")),
        "rm": ("id", g.staff(12, "en")), "risk": ("conf|qi ordinal|nominal", g.one("low|medium|high")), "ccy": ("other|qi|conf nominal", g.one("GBP|EUR|USD")),
    }  # fmt: skip


def labour_force() -> Columns:
    g, h, of = pair(1500, 700, 313)
    homes = of(h.serial(70100201, 40))
    skip = {"-9": 0.34, "-8": 0.03}
    return {
        "hser": ("id household", homes), "persno": ("other|qi|id nominal|ordinal|numeric", nth(homes)), "case": ("id unit", [f"{v}" for v in g.serial(9010000034, 60)]), "pwt22": ("id weight", g.heavy(480, 0.4, 0)),
        "phhwt": ("id weight", of(h.heavy(510, 0.3, 3))), "ref_wk": ("qi|other|conf date %d%m%Y", g.days("2022-01-02", "2022-12-30", "%d%m%Y")),
        "wv": ("other|qi|conf ordinal|nominal|numeric", g.ints(1, 6)), "gor": ("qi nominal", of(h.one("1|2|4|5|6|7|8|10|11|12"))), "age": ("qi numeric whole", g.whole(44, 18, 16, 95)), "sex": ("qi nominal", g.one("1|2")),
        "ethuk": ("qi|conf nominal missing=-8,-9", g.marked(g.one("1|2|3|4|5"), {"-8": 0.01, "-9": 0.01})), "ilo": ("qi|conf nominal", g.one("1|2|3")),
        "isco": ("qi|conf nominal missing=-8,-9", g.marked(g.one("2341|5223|4110|7231|9112|2221|1219"), skip)),
        "nace": ("qi|conf nominal missing=-8,-9", g.marked(g.one("47.11|86.10|85.20|56.10|01.13|62.01"), skip)), "hrs": ("qi|conf numeric whole missing=-8,-9", g.marked(g.whole(35, 10, 1, 90), skip)),
        "hpay": ("conf numeric missing=-8,-9", g.marked(g.heavy(15, 0.4), {"-9": 0.4, "-8": 0.08})), "grswk": ("conf numeric whole missing=-8,-9", g.marked(g.heavy(560, 0.5, 0), {"-9": 0.4, "-8": 0.08})),
        "lngl": ("conf|qi nominal missing=-8,-9", g.marked(g.one("1|2"), {"-8": 0.02, "-9": 0.01})), "hiq": ("qi|conf ordinal|nominal|numeric missing=-8,-9", g.marked(g.one("1|2|3|4|5|6"), {"-8": 0.02, "-9": 0.05})),
    }  # fmt: skip


def app_log() -> Columns:
    g, p, of = pair(2400, 260, 314)
    agents = "Mozilla/5.0 (iPhone; CPU iPhone OS 16_5 like Mac OS X)|Mozilla/5.0 (Windows NT 10.0; Win64; x64) Firefox/115.0|okhttp/4.9.3|Mozilla/5.0 (Linux; Android 13; SM-A536B)"
    when = g.moments("2024-02-01", "2024-02-29")
    return {
        "h": ("id unit", of(p.mask("*" * 64))), "ts": ("qi|conf date ?", [m.isoformat(timespec="seconds") + f".{v:03d}Z" for m, v in zip(when, g.ints(0, 1000), strict=True)]),
        "src": ("id", g.mask("91.4#.1##.1##", "81.2#.1##.1#", "2a02:810*:**00:****::*")), "ua": ("qi|id|conf nominal", of(p.one(agents))),
        "adid": ("id", of(p.mask("********-****-4***-a***-************"))), "sid": ("id", g.mask("s_@@##@#@@##@#")),
        "u": ("id", glue("https://app.example.com/u/{}/{}", of(p.serial(48000)), g.one("inbox|pay|settings|chat?with=9921"))),
        "from": ("qi|conf|other nominal", g.one("https://www.google.com/|https://news.example.org/|android-app://com.slack/")),
        "ev": ("conf|qi|other nominal", g.one("open|tap|scroll|purchase|close")), "code": ("other|qi|conf nominal", g.one("200|204|302|404|500")),
        "bytes": ("conf|qi|other numeric whole", g.heavy(5200, 0.9, 0)), "os": ("qi|other|conf nominal", of(p.one("16.5.1|17.0.2|13.0|12.1.0"))),
        "loc": ("qi|other|conf nominal", of(p.one("de-DE|en-GB|pt-BR|tr-TR"))), "ms": ("other|conf|qi numeric whole", g.heavy(120, 0.7, 0)),
    }  # fmt: skip


def era(born: dt.date) -> str:
    for name, first in (("令和", (2019, 5, 1)), ("平成", (1989, 1, 8)), ("昭和", (1926, 12, 25))):
        if (born.year, born.month, born.day) >= first:
            return f"{name}{born.year - first[0] + 1}年{born.month}月{born.day}日"
    raise ValueError(born)


def checkup() -> Columns:
    g = G("en", 620, 315)
    family, given = ([(w[:2], w[2:]) for w in text.split()] for text in (JAPANESE, GIVEN))
    drawn = [(family[i], given[j]) for i, j in g.rng.integers(0, 12, (620, 2))]
    return {
        "受診者番号": ("id unit", [f"{v:08d}" for v in g.serial(310022)]), "氏名": ("id", [f"{a[0]}　{b[0]}" for a, b in drawn]),
        "フリガナ": ("id", [f"{a[1]}　{b[1]}" for a, b in drawn]), "生年月日": ("qi date ?", [era(m) for m in g.moments("1944-01-01", "2003-01-01")]),
        "性別": ("qi nominal", g.one("男|女")), "郵便番号": ("qi|id nominal", g.one("154-0004|060-0061|530-0001|460-0008|812-0011")),
        "住所": ("id", glue("{}{}-{}-{}", g.one("東京都世田谷区桜丘|大阪市北区梅田|札幌市中央区南|名古屋市中区栄"), g.ints(1, 8), g.ints(1, 30), g.ints(1, 20))),
        "連絡先": ("id", g.mask("090-3###-####", "080-5###-####", "03-3###-####")), "勤務先": ("qi|conf nominal", g.one("株式会社山田製作所|北都銀行|東洋電機(株)|市役所")),
        "受診日": ("qi|conf date %Y年%m月%d日", g.days("2023-04-03", "2024-02-20", "%Y年%m月%d日")), "身長": ("qi|conf numeric", g.decimals(164, 9, 1)),
        "体重": ("qi|conf numeric", g.decimals(62, 11, 1)), "腹囲": ("conf|qi numeric missing=999", g.marked(g.decimals(82, 9, 1), {"999": 0.04})),
        "血圧上": ("conf|qi numeric whole", g.whole(124, 15, 80, 210)), "HbA1c": ("conf numeric missing=未実施", g.marked(g.decimals(5.7, 0.6, 1), {"未実施": 0.08})),
        "喫煙": ("conf|qi nominal", g.one("吸う|吸わない|やめた")), "判定": ("conf|qi ordinal|nominal", g.one("A|B|C|D")), "担当医": ("id", g.one("|".join(f"{a} {b}" for (a, _), (b, _) in zip(family[:9], given[3:], strict=True)))),
    }  # fmt: skip


def clinic_ru() -> Columns:
    g, p, of = pair(950, 400, 316)
    sex = p.one("м|ж")
    rest = {"м": "Алексей Петрович|Иван Сергеевич|Олег Юрьевич", "ж": "Мария Ивановна|Ольга Петровна|Анна Олеговна"}  # fmt: skip
    family = each(lambda n, s: n + "а" * (s == "ж"), p.rng.choice(RUSSIAN.split(), 400), sex)
    full = [f"{f} {p.rng.choice(rest[s].split('|'))}" for f, s in zip(family, sex, strict=True)]
    return {
        "карта": ("id unit", of([f"{v}/23" for v in p.serial(20417)])), "фио": ("id", of(full)), "гр": ("qi date %d.%m.%Y", of(p.days("1938-01-01", "2006-01-01", "%d.%m.%Y"))), "п": ("qi nominal", of(sex)),
        "пф": ("id", of([snils(b) for b in p.mask("1########")])), "полис": ("id", of([luhn(b) for b in p.mask("77############0", "50############1")])),
        "прож": ("id", of(glue("ул. {}, д. {}, кв. {}", p.one("Ленина|Мира|Садовая|Гагарина"), p.ints(1, 90), p.ints(1, 200)))),
        "тел": ("id", of(p.mask("+7 (916) ###-##-##", "8-903-###-##-##"))), "район": ("qi nominal", of(p.one("Северный|Южный|Заречный|Центр"))),
        "приём": ("qi|conf date %d.%m.%Y %H:%M", shown(g.moments("2023-01-09", "2023-12-20"), "%d.%m.%Y %H:%M")), "мкб": ("conf|qi nominal", g.one(ICD)),
        "врач": ("id", g.one("Смирнов А.В.|Гусева Е.Н.|Ким О.Л.|Фёдорова И.П.|Ахметов Р.Р.|Белова Т.С.")),
        "ад": ("conf|qi|id nominal", glue("{}/{}", g.ints(100, 170), g.ints(60, 100))), "сахар": ("conf numeric", g.marked(g.heavy(5.4, 0.2, 1, ","), blank=0.1)),
        "рост": ("qi|conf numeric whole", of(p.whole(169, 9, 145, 200))), "инв": ("conf|qi nominal|ordinal", of(p.one("нет|I|II|III"))),
        "жалобы": ("id", glue("{} {}, направлена к врачу {}", g.one("Боли в спине|Кашель|Слабость"), g.one("вторую неделю|с понедельника|после падения"), g.rng.choice(RUSSIAN.split(), 950))),
    }  # fmt: skip


def civil_register() -> Columns:
    g = G("en", 800, 317)
    born = g.moments("1940-01-01", "1999-12-30")
    return {
        "ΑΜΚΑ": ("id unit", [luhn(f"{b:%d%m%y}{s}") for b, s in zip(born, g.mask("####"), strict=True)]),
        "ΑΦΜ": ("id", [afm(b) for b in g.mask("0#######", "1#######")]), "Ταυτ.": ("id", g.mask("ΑΚ ######", "ΑΝ ######", "Χ ######")),
        "Επώνυμο": ("id", g.names("el", "{1}")), "Όνομα": ("id", g.names("el", "{0}")), "Πατρώνυμο": ("id", g.one("Γεώργιος|Δημήτριος|Νικόλαος|Κωνσταντίνος|Παναγιώτης|Ιωάννης")), "Γέννηση": ("qi date %d/%m/%Y", shown(born, "%d/%m/%Y")), "Φύλο": ("qi nominal", g.one("Α|Θ")),
        "Δήμος": ("qi nominal", g.one("Αθηναίων|Θεσσαλονίκης|Πατρέων|Βόλου|Χανίων")), "Μερίδα": ("id household", [f"{v}/2" for v in g.ints(1, 330)]),
        "Κατοικία": ("id", glue("{} {}", g.one("Ερμού|Αγίου Δημητρίου|Βενιζέλου|Οδός Αθηνάς"), g.ints(1, 120))), "ΤΚ": ("qi|id nominal", g.one("105 63|546 24|262 21|382 21|731 00")), "Κινητό": ("id", g.mask("694#######", "697#######")),
        "Κατάσταση": ("qi|conf nominal", g.one("Άγαμος|Έγγαμος|Διαζευγμένος|Χήρος")), "Τέκνα": ("qi|conf numeric|ordinal|nominal", g.whole(1.3, 1.1, 0, 6)),
        "Θρήσκευμα": ("conf|qi nominal missing?=-", g.one("ΧΟ|Μουσ.|Καθ.|-")), "Επάγγελμα": ("qi|conf nominal", g.one("δάσκαλος|γεωργός|ναυτικός|υπάλληλος")),
    }  # fmt: skip


def claims() -> Columns:
    g, p, of = pair(1500, 520, 318)
    ssn = glue("{}-{}-{}", p.ints(100, 665), p.ints(10, 99), p.ints(1000, 9999))
    clinicians = G("en", 40, 2318)
    seen = g.rng.integers(0, 40, 1500)
    numbers = [npi(b) for b in clinicians.mask("1########")]
    names = clinicians.names("en", "{1} {0} MD")
    billed = g.heavy(310, 0.9)
    return {
        "col_a": ("id", g.mask("23############")), "col_b": ("id unit", of([f"W{v}" for v in p.serial(261000311, 50)])), "col_c": ("id", g.marked(of(ssn), blank=0.12)), "col_d": ("id", of([s.replace("-", "") for s in ssn])),
        "col_e": ("id", of([n.upper() for n in p.names("en", "{1}, {0}")])), "col_f": ("qi date %m/%d/%Y", of(p.days("1936-01-01", "2018-01-01", "%m/%d/%Y"))),
        "col_g": ("qi nominal", of(p.one("F|M|U"))), "col_h": ("qi|id nominal", of(p.mask("021##", "0602#", "1002#"))),
        "col_i": ("id", of(p.mask("(617) 555-####", "860-555-####", "+1 212 555 ####"))), "col_j": ("id", [numbers[i] for i in seen]), "col_k": ("id", [names[i] for i in seen]), "col_l": ("conf|qi nominal", g.one(ICD)),
        "col_m": ("conf|qi nominal", g.one("99213|99214|80053|71046|93000|36415")), "col_n": ("qi|conf date %Y%m%d", g.days("2022-01-01", "2023-06-30", "%Y%m%d")),
        "col_o": ("qi|conf|other nominal", g.one("11|21|22|23|81")), "col_p": ("conf|qi numeric", billed),
        "col_q": ("conf|qi numeric", [f"{float(v) * f:.2f}" for v, f in zip(billed, g.rng.choice([0, 0.4, 0.8], 1500), strict=True)]), "col_r": ("conf|qi|other nominal", g.one("PAID|DENIED|PEND")),
    }  # fmt: skip


def police() -> Columns:
    g = G("en", 1100, 319)
    form = "%m/%d/%Y %I:%M:%S %p"
    return {
        "inc": ("id", [f"23-{v:06d}" for v in g.serial(11)]), "when": (f"qi|conf date {form}", shown(g.moments("2023-01-01", "2023-12-30"), form)),
        "where": ("id", glue("{} {}", g.ints(100, 4900), g.one("Oak Street|W 5th Ave|Jackson Blvd|Maple Dr Apt 2|Lincoln Rd"))), "y": ("id|qi numeric", [f"{41.85 + v:.5f}" for v in g.rng.normal(0, 0.05, 1100)]),
        "x": ("id|qi numeric", [f"{-87.65 + v:.5f}" for v in g.rng.normal(0, 0.05, 1100)]), "beat": ("qi|conf|other nominal", g.one("0111|0124|0312|0423|1011")),
        "veh": ("id", g.marked(g.mask("@@ #####", "@@@ ####", "@## ###"), blank=0.55)), "off1": ("id", g.staff(30, "en", "{1}, {0}")),
        "star": ("id|qi nominal", [str(v) for v in g.rng.choice(g.rng.integers(10000, 19999, 30), 1100)]), "v_nm": ("id missing?=UNKNOWN", g.marked(g.names("en", "{0} {1}"), UNKNOWN=0.2)),
        "v_age": ("qi numeric whole missing=999", g.marked(g.whole(36, 15, 2, 93), {"999": 0.06})), "v_sex": ("qi nominal missing?=X", g.one("F|M|X")),
        "v_race": ("qi|conf nominal", g.one("W|B|H|A|I")), "iucr": ("conf|qi|other nominal", g.one("0460|0486|0560|0820|1310")), "desc": ("conf|qi|other nominal", g.one("SIMPLE|DOMESTIC BATTERY|$500 AND UNDER|TO PROPERTY")),
        "wpn": ("conf|qi|other nominal", g.one("none|handgun|knife|vehicle")), "arr": ("conf|qi nominal", g.one("Y|N")),
        "narr": ("id", glue("R/O met {} who stated that {} near {}", g.names("en"), g.one("the window was broken|her purse was taken|he was struck"), g.one("the bus stop|home|the bar"))),
    }  # fmt: skip


PLACES = {
    "br": ("campo", "3550308|3304557|2927408|4106902"),
    "es": ("var", "Lugo|Sevilla|Teruel|Bilbao"),
    "it": ("c", "F205|H501|L219|A944"),
    "pl": ("kol", "1465011|1261011|0264011|3064011"),
}


def tax_ids(land: str, seed: int) -> Columns:
    """Declarations of a few years, with nothing but a tax number to tell persons by."""
    g, p, of = pair(600, 240, seed)
    born, names = p.moments("1945-01-01", "2003-01-01"), p.names(land)
    female = [int(v) for v in p.rng.integers(0, 2, 240)]
    head, places = PLACES[land]
    place, form = p.one(places), {"pl": "%d.%m.%Y"}.get(land, "%d/%m/%Y")
    maker: Callable[..., str] = {"br": cpf, "es": dni, "it": fiscal_code, "pl": pesel}[land]
    nine, serial = p.mask("#########"), p.mask("####")
    known = {"br": [nine], "es": [[n[1:] for n in nine]], "it": [names, born, place, female], "pl": [born, serial, female]}  # fmt: skip
    numbers = each(maker, *known[land])
    values = [
        ("qi|other|conf numeric|ordinal|nominal", g.ints(2019, 2024)),
        ("id unit", of(numbers)),
        ("id", of(names)),
        (f"qi date {form}", of(shown(born, form))),
        ("qi nominal", of(["2" if f else "1" for f in female])),
        ("qi nominal", of(place)),
        ("conf|qi nominal", g.one("A|B|C|D")),
        ("conf numeric", g.heavy(31000, 0.6, 2, ",")),
        ("conf numeric", g.marked(g.heavy(4200, 0.9, 2, ","), blank=0.3)),
        ("conf numeric whole", g.heavy(123456789, 0.2, 0)),
        (f"qi|conf|other date {form}", g.days("2020-01-01", "2024-06-01", form)),
    ]  # fmt: skip
    return {f"{head}{n}": value for n, value in enumerate(values, 1)}


def floats() -> Columns:
    g, p, of = pair(1200, 430, 324)

    def real(values: Iterable[Any], share: float = 0.07) -> list[float | None]:
        return each(lambda v, r: None if r < share else float(v), values, g.rng.random(1200))

    return {
        "pid": ("id unit", real(of(p.serial(100301)), 0)), "hid": ("id household", real(of(p.ints(20100, 20330)), 0)), "syear": ("qi|other|conf numeric|ordinal|nominal", real(g.ints(2018, 2022), 0)),
        "gebjahr": ("qi numeric|ordinal whole", real(of(p.whole(1969, 16, 1930, 2003)), 0.02)), "sex": ("qi nominal", real(of(p.ints(1, 3)), 0.01)),
        "bula": ("qi nominal", real(of(p.ints(1, 17)))), "educ": ("qi|conf ordinal|nominal|numeric", real(of(p.ints(1, 7)))),
        "nkids": ("qi|conf numeric|ordinal whole", real(g.whole(1, 1.1, 0, 6))), "hours": ("qi|conf numeric whole", real(g.whole(35, 10, 1, 80), 0.3)),
        "labgro": ("conf numeric whole", real(g.heavy(2700, 0.6, 0), 0.35)), "sat": ("conf|qi|other ordinal|numeric", real(g.whole(7, 1.8, 0, 10))),
        "docvis": ("conf|qi numeric|ordinal whole", real(g.whole(3, 4, 0, 45))), "disab": ("conf|qi nominal", real(g.ints(0, 2))),
        "bmi": ("qi|conf numeric", real(g.heavy(25.4, 0.15, 1), 0.1)), "phrf": ("id weight", real(g.heavy(1900, 0.6, 3), 0)),
    }  # fmt: skip


def spellings() -> Columns:
    g = G("en", 850, 325)
    marks = {"unknown": 0.04, "refused": 0.03, "n/a": 0.03}
    all_marks = "missing=unknown,refused,n/a"
    return {
        "rid": ("id unit", g.serial(3001)), "gender": (f"qi nominal {all_marks}", g.marked(g.one("Male|male|MALE|Female|female |FEMALE|female"), marks)),
        "age": ("qi numeric whole missing=refused", g.marked(g.whole(45, 17, 18, 91), refused=0.04)), "county": (f"qi nominal {all_marks}", g.marked(g.one("Kent|kent|Essex|ESSEX | Essex|Surrey|surrey|Devon"), marks)),
        "job": ("qi|conf nominal missing=unknown", g.marked(g.one("Nurse|nurse|Teacher|teacher |Driver|DRIVER|Retired|retired"), unknown=0.05)),
        "smoke": (f"conf|qi nominal {all_marks}", g.marked(g.one("Yes|yes|YES |No|no|NO"), marks)), "faith": ("conf|qi nominal missing=refused", g.marked(g.one("none|None |Christian|christian|Muslim|Hindu"), refused=0.12)),
        "health": (f"conf|qi ordinal|nominal {all_marks}", g.marked(g.one("Good|good|Fair|fair |Poor|Very good|very  good"), marks)),
        "income": ("conf numeric whole missing=refused,unknown", g.marked(g.heavy(29000, 0.5, 0), refused=0.12, unknown=0.04)), "drinks": ("conf|qi numeric|ordinal whole missing=n/a", g.marked(g.whole(6, 6, 0, 60), {"n/a": 0.15})),
        "last_gp": ("qi|conf date %d/%m/%Y missing=01/01/1900", g.marked(g.days("2019-01-01", "2023-06-01", "%d/%m/%Y"), {"01/01/1900": 0.07})),
        "vote": ("conf|qi nominal missing?=refused,n/a", g.marked(g.one("Lab|lab|Con|CON|LD|Green"), {"refused": 0.15, "n/a": 0.05})), "weight_kg": ("qi|conf numeric missing=999.9", g.marked(g.decimals(77, 14, 1), {"999.9": 0.04})),
    }  # fmt: skip


def dates() -> Columns:
    g = G("en", 640, 326)
    seen = g.moments("2020-02-01", "2022-11-30")
    offset = [("+01:00", "+02:00")[4 <= m.month <= 10] for m in seen]
    return {
        "n": ("id unit", g.serial(881)), "b": ("qi date %d.%m.%y", g.days("1927-01-01", "2008-01-01", "%d.%m.%y")), "sx": ("qi nominal", g.one("f|m")),
        "mth": ("qi|conf|other date|ordinal ?", shown(seen, "%Y-%m")), "wk": ("qi|conf|other date|ordinal|nominal ?", shown(seen, "%G-W%V")),
        "qtr": ("qi|conf|other date|ordinal|nominal ?", [f"{m.year}-Q{(m.month + 2) // 3}" for m in seen]), "in_us": ("qi|conf date %m/%d/%Y %I:%M %p", shown(seen, "%m/%d/%Y %I:%M %p")),
        "in_iso": ("qi|conf date %Y-%m-%d", glue("{}{}", shown(seen, "%Y-%m-%dT%H:%M:%S"), offset)),
        "rep": ("qi|conf date %Y%m%d", later(seen, g.ints(0, 9), "%Y%m%d")), "let": ("qi|conf|other date %d %B %Y", later(seen, g.ints(2, 30), "%d %B %Y")),
        "sas": ("qi|conf date %d%b%Y", later(seen, g.ints(1, 60), "%d%b%Y")), "until": ("qi|conf date %Y-%m-%d missing=9999-12-31", g.marked(later(seen, g.ints(9, 400), "%Y-%m-%d"), {"9999-12-31": 0.3})),
        "clock": ("qi|conf|other|id", shown(seen, "%I:%M %p")), "lag": ("qi|conf|other numeric|ordinal whole", g.whole(12, 9, 0, 70)), "res": ("conf nominal", g.one("positive|negative|invalid")),
    }  # fmt: skip


def laboratory() -> Columns:
    g, p, of = pair(1400, 380, 327)
    mrn, mac = of([f"{v:08d}" for v in p.serial(611204, 30)]), G("en", 6, 2327).mask("00:1b:63:**:**:**")  # fmt: skip
    drawn = 9 * np.exp(g.rng.normal(0, 1.3, 1400))
    value = ["<0.5" if v < 0.5 else ">200" if v > 200 else f"{v:.1f}" for v in drawn]
    when = g.moments("2023-01-01", "2023-12-30")
    return {
        "acc": ("id", g.mask("********-****-4***-9***-************")), "mrn": ("id unit", mrn), "d": ("qi date %Y-%m-%d", of(p.days("1934-01-01", "2020-01-01", "%Y-%m-%d"))), "s": ("qi nominal", of(p.one("F|M"))),
        "ward": ("qi|conf|other nominal", g.one("4 East|ICU|Oncology|ED")), "ana": ("conf|qi|other nominal", g.one("CRP|Ferritin|TSH|B12|PSA")),
        "res": ("conf numeric", value), "u": ("other|qi|conf nominal", g.one("mg/L|ng/mL|mIU/L")),
        "fl": ("conf|qi nominal|ordinal", g.marked(g.one("H|L|N"), blank=0.1)), "coll": ("qi|conf date %Y-%m-%d %H:%M", shown(when, "%Y-%m-%d %H:%M")),
        "login": ("id", g.one("jsmith4|akhan|mrees2|t.okafor|lnguyen|pdunn7|svega|rpatel3")), "host": ("qi|other|id|conf nominal", g.one("LAB-PC-03|LAB-PC-07|LAB-PC-11")),
        "an_mac": ("id|qi|other nominal", [mac[i] for i in g.rng.integers(0, 6, 1400)]), "meter": ("id", of(p.mask("a4:5e:60:**:**:**"))),
        "pdf": ("id", glue("/mnt/lis/out/2023/{}_{}.pdf", mrn, g.ints(1, 99))), "sum": ("id", g.mask("*" * 40)), "by": ("id", g.staff(22, "en", "{2}. {1}")),
    }  # fmt: skip


def clinicians() -> Columns:
    g, p, of = pair(1500, 800, 328)
    came = g.moments("2023-01-02", "2023-12-20")
    return {
        "Vorgang": ("id", [f"{v}" for v in g.serial(2300017, 3)]), "Fallführende": ("id unit", of([f"F{v}" for v in p.serial(40213)])),
        "Jg": ("qi numeric|ordinal|nominal whole", of(p.whole(1963, 20, 1926, 2018))), "G": ("qi nominal", of(p.one("m|w"))),
        "Kreis": ("qi nominal", of(p.one("09162|09175|09184|09188"))), "Behandelt": ("id", g.staff(45, "de", "{0} {1}")),
        "Zweitmeinung": ("id", g.marked(g.staff(12, "de", "Dr. {1}"), blank=0.6)), "Ltg": ("id", g.staff(5, "de", "Prof. Dr. {0} {1}")),
        "Datum": ("qi|conf date %d.%m.%Y", shown(came, "%d.%m.%Y")), "Ambulanz": ("qi|conf|other nominal", g.one("Herz|Haut|Rücken|Schmerz|Schlaf")),
        "ICD": ("conf|qi nominal", g.one(ICD)), "GOÄ": ("conf|qi|other nominal", g.one("1|5|7|650|3550")),
        "Faktor": ("conf|qi|other numeric|ordinal|nominal", g.one("1,0|1,8|2,3|3,5")), "Betrag": ("conf|qi numeric", g.heavy(84, 0.6, 2, ",")),
        "NRS": ("conf|qi ordinal|numeric", g.whole(4, 2.4, 0, 10)), "Sitzung": ("qi|conf|other numeric|ordinal", g.ints(1, 9)),
    }  # fmt: skip


def loans() -> Columns:
    """A control: amounts of nine digits, and names of firms, goods, towns and releases."""
    g = G("en", 900, 329)
    return {
        "borrower": ("id unit", [f"B{v}" for v in g.serial(70011)]), "yob": ("qi numeric|ordinal|nominal whole", g.whole(1980, 11, 1948, 2003)),
        "sex": ("qi nominal", g.one("F|M")), "town": ("qi nominal", g.one("Florence|Madison|Jackson|Austin|Charlotte|Lincoln|Santiago")), "iso3": ("qi|other|conf nominal", g.one("USA|CHL|IDN|DEU")),
        "firm": ("qi|conf|other nominal", g.one("Müller GmbH|Schmidt & Söhne KG|John Deere|Ben & Jerry's|Rossi S.p.A.|Wells Fargo|PT Astra")),
        "good": ("conf|qi|other nominal", g.one("Samsung Galaxy S21|Mercedes-Benz A 180|Ford Fiesta|Billy Regal|Jack & Jones Parka")),
        "idr": ("conf numeric whole", g.heavy(361000000, 0.25, 0)), "idr_paid": ("conf|qi numeric whole", g.heavy(214000000, 0.25, 0)),
        "term": ("conf|qi|other numeric|ordinal|nominal", g.one("12|24|36|48|60")), "rate": ("conf|qi|other numeric", g.decimals(7.4, 1.6, 2)),
        "app": ("other|qi|conf nominal", g.one("10.0.0.1|10.0.2.0|10.1.0.4|9.8.12.3|10.1.1.0")), "page": ("other|qi|conf nominal", g.one("/loans/car|/loans/home|/partner/ford")),
        "branch": ("qi|conf|other nominal", g.one("Station Road|High Street|Market Square|King's Cross")), "grade": ("conf|qi ordinal|nominal", g.one("A|B|C|D|E")),
        "ean": ("conf|qi|other nominal", g.one("4006381333931|5901234123457|4012345123456")), "default": ("conf|qi nominal", g.one("0|1")),
    }  # fmt: skip


def wards() -> Columns:
    """A control: wards and hospitals that are named after people, brands, codes and long counts."""
    g = G("en", 760, 330)
    return {
        "enc": ("id unit", [f"{v}" for v in g.serial(5520013)]), "band": ("qi ordinal|nominal", g.one("0-17|18-39|40-64|65-79|80+")),
        "sex": ("qi nominal", g.one("female|male")), "region": ("qi nominal", g.one("Victoria|New South Wales|Tasmania|Queensland")),
        "hosp": ("qi|conf|other nominal", g.one("St Vincent's|Princess Alexandra|Royal Adelaide|Sir Charles Gairdner")),
        "ward": ("qi|conf|other nominal", g.one("Florence Nightingale|Marie Curie|Alexander Fleming|Elizabeth Blackwell|4B")),
        "syndrome": ("conf|qi nominal", g.one("Guillain-Barré|Parkinson|Alzheimer|Crohn|Graves|Hodgkin")), "score": ("conf|qi|other nominal", g.one("Apgar|Glasgow|Barthel|Braden")),
        "drug": ("conf|qi nominal", g.one("Yasmin|Ventolin|Aspirin Bayer|Jakavi|Panadol")), "atc": ("conf|qi nominal", g.one("N02BE01|R03AC02|B01AC06|L01EJ01")),
        "device": ("other|qi|conf nominal", g.one("Philips MX450|Dräger Evita V500|GE Carescape")), "platelets": ("conf numeric whole", g.heavy(251000000, 0.25, 0)),
        "fw": ("other|qi|conf nominal", g.one("1.2.10.4|1.3.0.0|2.0.0.12")), "month": ("qi|conf|other ordinal|nominal", g.one("April|May|June|August")),
        "los": ("conf|qi numeric|ordinal whole", g.whole(5, 4, 0, 60)), "nat": ("qi|conf nominal", g.one("AU|NZ|IN|GB|CN")),
        "dest": ("conf|qi|other nominal", g.one("home|Rose Cottage|transfer|died")), "cost": ("conf|qi numeric", g.heavy(5200, 0.6)),
    }  # fmt: skip


ISO = Dialect("%Y-%m-%d", ",", ".")
US = Dialect("%m/%d/%Y", ",", ".")
UK = Dialect("%d/%m/%Y", ",", ".")
GERMAN = Dialect("%d.%m.%Y", encoding="cp1252")
FILES: dict[str, FirstFile] = {
    "stays es": FirstFile(stays, Dialect("%d/%m/%Y", encoding="cp1252")), "household survey fr": FirstFile(household_survey, Dialect("%Y-%m-%d", ";", ".")),
    "web shop de": FirstFile(web_shop, ISO), "school ar": FirstFile(school, Dialect("%Y/%m/%d", ",", ".")), "payroll de": FirstFile(payroll, GERMAN),
    "trial in long form": FirstFile(long_trial, ISO), "bike rides": FirstFile(bikes, ISO), "likert items": FirstFile(likert, ISO),
    "sixty members nl": FirstFile(sixty, Dialect("%d-%m-%Y")), "taxpayers de": FirstFile(taxpayers, Dialect("%d.%m.%Y", ";", ".")),
    "duplicates": FirstFile(duplicates, ISO), "bank accounts": FirstFile(bank_accounts, UK), "labour force": FirstFile(labour_force, Dialect("%d%m%Y", "\t", ".")),
    "app log": FirstFile(app_log, ISO), "check-up ja": FirstFile(checkup, Dialect("%Y年%m月%d日", ",", ".")), "clinic ru": FirstFile(clinic_ru, Dialect("%d.%m.%Y")),
    "civil register el": FirstFile(civil_register, UK), "claims us": FirstFile(claims, US), "police incidents": FirstFile(police, US),
    **{f"tax ids {c}": FirstFile(lambda c=c, i=i: tax_ids(c, 320 + i), Dialect("%d/%m/%Y")) for i, c in enumerate(PLACES)},
    "whole numbers as floats": FirstFile(floats, ISO), "spellings": FirstFile(spellings, UK), "dates": FirstFile(dates, ISO), "laboratory": FirstFile(laboratory, ISO),
    "clinicians de": FirstFile(clinicians, GERMAN), "control: loans": FirstFile(loans, ISO), "control: wards": FirstFile(wards, ISO),
}  # fmt: skip
