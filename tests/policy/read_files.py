"""Files whose drafted releases were read by eye, made without sight of the recogniser.

Answers as in `first_files`; half of the headers say nothing. `docs/research/drafts.md` has what was read.
"""

import datetime as dt
import hashlib
from typing import Any

from tests.policy.first_files import Columns, Dialect, FirstFile
from tests.policy.odd_files import G, each, geohash, glue, iban, luhn, nth, pair, shown


def listed(names: str) -> list[str]:
    return names.split("|")


ENGLISH = listed(
    "Josiah|Hepzibah|Thos.|Wm|Keziah|Ebenezer|Martha|Ambrose|Lettice|Silas|Tamsin|Enoch"
)
PARISH = listed("Trethewey|Penrose|Bolitho|Nancarrow|Hocking|Rowse|Tregear|Chenoweth|Pascoe|Opie")
MODERN = listed(
    "Keisha|Brandon|Xiomara|Dwayne|Siobhan|Tyrell|Mackenzie|Hyun-woo|Consuelo|Ludmila|Abdi|Tess"
)
MODERN2 = listed(
    "Oyelaran|Kowalczuk|Delacroix|McAllister|Thibodeaux|Szabo|Quispe|Hernandez|O'Rourke|Van Dyke|Lindqvist"
)
TURKISH, TURKISH2 = (
    listed("Elif|Mehmet|Zeynep|Emre|Ayşe|Burak|Gökhan|Şule|İrem|Oğuz"),
    listed("Yıldırım|Çelik|Öztürk|Kaya|Arslan|Aydın|Doğan|Koç|Şahin"),
)
ARABIC, ARABIC2 = (
    listed("سعاد|ماجد|هيثم|رنا|بدر|لمى|زياد|غادة|طارق|أسماء"),
    listed("الغامدي|الدوسري|المطيري|العنزي|الشهري|الزهراني|باوزير|الرشيد"),
)
GREEK, GREEK2 = (
    listed("Αναστασία|Σπύρος|Βασιλική|Θανάσης|Ευαγγελία|Στέλιος|Χρήστος|Δέσποινα"),
    listed("Παπαδάκης|Τσιρώνης|Αλεξίου|Μανωλάκη|Κοντός|Σταθόπουλος|Λαμπρόπουλος"),
)
RUSSIAN, RUSSIAN2 = (
    listed(
        "Игорь Петрович|Ольга Викторовна|Сергей Ильич|Татьяна Юрьевна|Денис Олегович|Алла Борисовна"
    ),
    listed("Голубев|Тихонова|Щербак|Ершов|Мельник|Чудинова|Якушев"),
)
CZECH, CZECH2 = (
    listed("Jiří|Zdeňka|Vojtěch|Markéta|Bohumil|Šárka|Radek|Ludmila"),
    listed("Dvořák|Procházková|Kučera|Veselá|Hájek|Němcová|Řezníček"),
)
SWEDISH, SWEDISH2 = (
    listed("Linnéa|Göran|Åsa|Björn|Ingrid|Torbjörn|Maj-Britt|Elin"),
    listed("Sjögren|Åkesson|Bergqvist|Holmström|Lundin|Wikström|Ek"),
)
CHINESE, CHINESE2 = (
    listed("伟|秀英|芳|建国|丽娜|志强|晓燕|子轩|桂兰"),
    listed("王|李|赵|欧阳|陈|周|徐|孙|胡"),
)
KOREAN, KOREAN2 = listed("민준|서연|지훈|하은|영숙|상철|예진"), listed("김|이|박|최|정|강|윤")
PORTUGUESE, PORTUGUESE2 = (
    listed("Aníbal|Graça|Deolinda|Zeferino|Lurdes|Custódio|Fátima"),
    listed("Quintas|Bettencourt|Sequeira|Paixão|Rebelo|Morgado|Falcão"),
)


def named(g: G, first: list[str], family: list[str], form: str = "{} {}") -> list[str]:
    return glue(form, g.rng.choice(first, g.rows), g.rng.choice(family, g.rows))


def few(g: G, count: int, first: list[str], family: list[str], form: str = "{} {}") -> list[str]:
    """A few people who stand in all rows."""
    people = sorted({form.format(f, n) for f in first for n in family})
    return [str(v) for v in g.rng.choice(g.rng.permutation(people)[:count], g.rows)]


def checked(body: str, weights: list[int]) -> int:
    return sum(int(d) * w for d, w in zip(body, weights, strict=True))


def tc(body: str) -> str:
    """A Turkish identity number."""
    d = [int(c) for c in body]
    tenth = (7 * sum(d[::2]) - sum(d[1::2])) % 10
    return f"{body}{tenth}{(sum(d) + tenth) % 10}"


def inn(body: str) -> str:
    one = checked(body, [7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11 % 10
    return f"{body}{one}{checked(f'{body}{one}', [3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11 % 10}"


def snils(body: str) -> str:
    rest = checked(body, list(range(9, 0, -1))) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {rest:02d}"


def afm(body: str) -> str:
    return f"{body}{checked(body, [256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10}"


def amka(born: dt.date, serial: str) -> str:
    return luhn(f"{born:%d%m%y}{serial}")


def rodne(born: dt.date, female: int, serial: str) -> str:
    body = f"{born.year % 100:02d}{born.month + 50 * female:02d}{born.day:02d}{serial}"
    return f"{body[:6]}/{serial}{int(body) % 11 % 10}"


def personnummer(born: dt.date, serial: str) -> str:
    return f"{born:%Y%m%d}-{luhn(f'{born:%y%m%d}{serial}')[6:]}"


def resident(area: str, born: dt.date, serial: str) -> str:
    body = f"{area}{born:%Y%m%d}{serial}"
    rest = checked(body, [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11
    return f"{body}{'10X98765432'[rest]}"


def births(g: G, first: int, last: int) -> list[dt.date]:
    return [m.date() for m in g.moments(f"{first}-01-01", f"{last}-12-31")]


def parish() -> Columns:
    g = G("en", 900, 501)
    when = births(g, 1781, 1836)
    return {
        "Entry": ("id", list(range(1, 901))), "Baptised": ("qi date %d %b %Y", [f"{d.day:02d} {d:%b} {d.year}" for d in when]),
        "Forename": ("id", [str(v) for v in g.rng.choice(ENGLISH, 900)]), "Father": ("id", named(g, ENGLISH, PARISH)), "Mother": ("id", g.marked(named(g, ENGLISH, PARISH, "{}"), blank=0.05)),
        "Abode": ("qi nominal", g.one("Churchtown|Trevarrick|Polgooth|Sticker|London Apprentice|Levalsa")), "Quality": ("qi|conf nominal", g.one("Labourer|Tinner|Yeoman|Mariner|Cordwainer|Base born")),
        "Minister": ("id", few(g, 4, ENGLISH, PARISH, "Rev. {} {}")), "Age_at": ("qi numeric whole", g.whole(0.8, 2, 0, 40)), "Remarks": ("id", g.marked(named(g, ENGLISH, PARISH, "Privately baptised, sponsors {} and the widow {} of this parish"), blank=0.6)),
    }  # fmt: skip


def calls() -> Columns:
    g, p, of = pair(1800, 600, 502)
    start = g.moments("2023-05-01", "2023-07-31")
    return {
        "a1": ("id", [f"{m:%Y%m%d}-{i:06d}" for i, m in enumerate(start)]), "a2": ("id unit", of([f"K{v}" for v in p.serial(40021)])), "a3": ("id", of([f"+4930{v}" for v in p.digits(8)])),
        "a4": ("id", few(g, 22, MODERN, MODERN2, "{0}.{1}")), "a5": ("qi|conf|other nominal", g.one("billing|technical|sales|retention")), "a6": ("qi date", [f"{m:%Y-%m-%dT%H:%M:%S}+02:00" for m in start]),
        "a7": ("conf|qi numeric whole", g.heavy(60, 0.9, 0)), "a8": ("conf|qi numeric whole", g.heavy(300, 0.6, 0)), "a9": ("qi ordinal|nominal", of(p.one("18-29|30-44|45-59|60+"))), "a10": ("qi|conf nominal", of(p.one("Basic|Plus|Premium"))),
        "a11": ("conf|qi numeric|ordinal missing=99", g.marked(g.ints(0, 11), {"99": 0.35})), "a12": ("id", g.marked([f"{f.lower()}{n}@gmx.net" for f, n in zip(g.rng.choice(MODERN, 1800), g.ints(1, 999), strict=True)], blank=0.5)),
        "a13": ("id", glue("/rec/2023/{}/call_{}.wav", g.ints(1, 13), g.serial(10))), "a14": ("id", glue("caller upset about {}, promised refund to {}", g.one("invoice|router|delay"), named(g, MODERN, MODERN2))), "a15": ("conf|qi|other nominal", g.one("Y|N")),
    }  # fmt: skip


def lab() -> Columns:
    g, p, of = pair(2000, 420, 503)
    born = births(p, 1931, 2019)
    return {
        "MRN": ("id unit", of([f"{v:08d}" for v in p.serial(310022)])), "ACCESSION": ("id", g.mask("C23-######")), "PAT_NAME": ("id", of([n.upper() for n in named(p, MODERN, MODERN2, "{1}^{0}")])),
        "DOB": ("qi date %m/%d/%Y", of([f"{d:%m/%d/%Y}" for d in born])), "SEX": ("qi nominal missing=U", of(p.marked(p.one("F|M"), U=0.01))), "COLL_DTTM": ("qi|conf date %m/%d/%Y %I:%M %p", shown(g.moments("2023-01-01", "2023-12-31"), "%m/%d/%Y %I:%M %p")),
        "TEST_CD": ("conf|qi nominal", g.one("2345-7|718-7|2160-0|33914-3|1742-6")), "RESULT_VAL": ("conf numeric", [f"<{0.5}" if v < 0.5 else f"{v:.1f}" for v in g.rng.exponential(6, 2000)]), "UNITS": ("conf|qi|other nominal", g.one("mg/dL|g/dL|U/L")),
        "ABN_FLG": ("conf|qi nominal|ordinal", g.one("N|H|L|HH")), "ORD_PROV": ("id", few(g, 30, MODERN, MODERN2, "{1}, {0} MD")), "LOC": ("qi|conf|other nominal", g.one("ED|ICU|OPC-3|MEDSURG")), "FASTING": ("conf|qi|other nominal missing=UNK", g.marked(g.one("Y|N"), UNK=0.2)), "COMMENT": ("id", g.marked(glue("specimen hemolyzed, called RN {} {}", g.rng.choice(MODERN, 2000), g.ints(100, 2400)), blank=0.8)),
    }  # fmt: skip


def docket() -> Columns:
    g, p, of = pair(1100, 700, 504)
    filed = births(g, 2016, 2023)
    return {
        "docket_no": ("id", each(lambda d, n: f"{d:%y}-CR-{n:05d}", filed, g.serial(11, 5))), "sid": ("id unit", of([f"WA{v}" for v in p.serial(1200450)])), "defendant": ("id", of(named(p, MODERN, MODERN2, "{1}, {0}"))),
        "dob_yr": ("qi numeric|ordinal whole", of(p.ints(1950, 2003))), "race": ("qi|conf nominal missing=Unknown", of(p.marked(p.one("White|Black|Hispanic|Asian/PI"), Unknown=0.04))), "gender": ("qi nominal", of(p.one("M|F"))), "last_known_addr": ("id", of(glue("{} {} {}", p.ints(10, 9900), p.one("Alder|Pine|Rainier|Yesler"), p.one("St|Ave NE|Way")))),
        "filed": ("qi date %m/%d/%y", [f"{d:%m/%d/%y}" for d in filed]), "judge": ("id", few(g, 14, MODERN, MODERN2, "Hon. {} {}")), "def_atty": ("id", few(g, 40, MODERN, MODERN2)), "bar_no": ("id|qi nominal", g.one("31207|40118|22976|50331|18845|29004")),
        "charge": ("conf|qi nominal", g.one("RCW 9A.52.030|RCW 46.61.502|RCW 69.50.401|RCW 9A.36.041")), "plea": ("conf|qi nominal", g.one("guilty|Guilty|not guilty|nolo|guilty ")), "bail_usd": ("conf numeric", g.marked([f"{v:,.2f}" for v in g.rng.choice([500, 1000, 2500, 5000, 25000, 100000], 1100)], blank=0.1)), "sentence_mo": ("conf|qi numeric|ordinal whole", g.marked(g.whole(14, 12, 0, 240), blank=0.3)),
    }  # fmt: skip


def pensions() -> Columns:
    g = G("de", 1200, 505)
    born = births(g, 1932, 1961)
    gross = g.rng.normal(1250, 320, 1200).clip(200)
    health = (gross * 0.081).round(2)
    return {
        "sp1": ("id", each(lambda d, a, c, s: f"{a} {d:%d%m%y} {c} {s}", born, g.digits(2), g.mask("@"), g.mask("0##"))), "sp2": ("id", named(g, ["Waltraud", "Egon", "Roswitha", "Dietmar", "Hannelore", "Kemal"], ["Pfannkuch", "Obermaier", "Özdemir", "Krüger", "Stöhr"], "{1}, {0}")), "sp3": ("qi date %d.%m.%y", [f"{d:%d.%m.%y}" for d in born]),
        "sp4": ("qi nominal", g.one("m|w")), "sp5": ("qi|conf date|ordinal", [f"{d.year + 65}-{d.month:02d}" for d in born]), "sp6": ("conf|qi nominal", g.one("Altersrente|Erwerbsminderung|Witwenrente|Waisenrente")), "sp7": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in gross.round(2)]), "sp8": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in health]),
        "sp9": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in gross.round(2) - health]), "sp10": ("id", [iban("DE", a) for a in g.mask("37040044##########", "10050000##########")]), "sp11": ("qi|id nominal", g.mask("10###", "12###", "14###")), "sp12": ("conf|qi numeric", g.decimals(34, 9, 2)), "sp13": ("qi|conf nominal|ordinal|numeric missing=9", g.marked(g.one("0|1|2|3"), {"9": 0.05})), "sp14": ("qi|conf nominal", g.one("AOK Nordost|BARMER|TK|DAK-Gesundheit")),
    }  # fmt: skip


def farms() -> Columns:
    g = G("es", 950, 506)
    arable, pasture, wood = (g.rng.exponential(m, 950).round(2) for m in (8, 5, 2))
    return {
        "NumExploracao": ("id", [f"{v:07d}" for v in g.serial(20013)]), "Produtor": ("id", named(g, PORTUGUESE, PORTUGUESE2)), "NIF": ("id", g.mask("1########", "2########")), "SexoProd": ("qi nominal", g.one("H|M")), "IdadeProd": ("qi numeric whole", g.whole(61, 13, 19, 93)), "Freguesia": ("qi nominal", g.mask("0801##", "0815##")),
        "AreaArvense": ("conf|qi numeric", arable), "AreaPastagem": ("conf|qi numeric", pasture), "AreaFloresta": ("conf|qi numeric", wood), "AreaTotal": ("conf|qi numeric", (arable + pasture + wood).round(2)), "Bovinos": ("conf|qi numeric whole", g.heavy(6, 1, 0)), "Ovinos": ("conf|qi numeric whole", g.heavy(14, 1, 0)), "Rega": ("conf|qi nominal", g.one("sim|não")),
        "Instrucao": ("qi|conf nominal|ordinal", g.one("nenhum|básico|secundário|superior")), "Coord": ("id", glue("37°{:02d}'{:02d}\"N 8°{:02d}'{:02d}\"W", g.ints(0, 60), g.ints(0, 60), g.ints(0, 60), g.ints(0, 60))), "ArtigoMatricial": ("id", glue("{}-{}", g.ints(1, 900), g.mask("@"))), "VPP": ("conf numeric", g.heavy(18000, 0.9)), "Parcelas": ("conf|qi numeric whole", g.whole(5, 3, 1, 40)),
    }  # fmt: skip


def exams() -> Columns:
    g = G("en", 640, 507)

    def grade() -> list[Any]:
        return g.marked(g.whole(63, 18, 0, 100), G=0.04)

    return {
        "ogr_no": ("id", g.serial(2300, 3)), "tckn": ("id", [tc(v) for v in g.digits(9)]), "ad": ("id", [str(v) for v in g.rng.choice(TURKISH, 640)]), "soyad": ("id", [str(v).upper() for v in g.rng.choice(TURKISH2, 640)]), "sube": ("qi|conf nominal", g.one("9-A|9-B|10-A|10-B|11-C")), "dogum": ("qi date %d.%m.%Y", g.days("2006-01-01", "2009-12-31", "%d.%m.%Y")), "cinsiyet": ("qi nominal", g.one("K|E")),
        "mat": ("conf numeric|ordinal missing?=G", grade()), "fiz": ("conf numeric|ordinal missing?=G", grade()), "edb": ("conf numeric|ordinal missing?=G", grade()), "ort": ("conf numeric", g.decimals(64, 12, 1)), "veli": ("id", named(g, TURKISH, TURKISH2)), "veli_tel": ("id", [f"0 5{a} {b} {c} {d}" for a, b, c, d in zip(g.mask("##"), g.mask("###"), g.mask("##"), g.mask("##"), strict=True)]),
        "veli_eposta": ("id", g.marked([f"{v}@hotmail.com" for v in g.mask("veli####", "aile####")], blank=0.2)), "adres": ("id", glue("{} Mah. {} Sok. No:{} D:{}", g.one("Yeşilova|Kültür|Barış"), g.ints(100, 2000), g.ints(1, 90), g.ints(1, 20))), "burs": ("conf|qi nominal", g.one("var|yok")), "devamsizlik": ("conf|qi numeric|ordinal", g.ints(0, 21)),
    }  # fmt: skip


def survey() -> Columns:
    g = G("en", 1400, 508)
    h = g.rng.integers(0, 620, 1400)
    homes, weights = g.rng.permutation(9000)[:620] + 100000, g.rng.lognormal(0, 0.4, 620).round(4)

    def item(top: int) -> list[Any]:
        return [int(v) for v in g.marked(g.ints(1, top + 1), {"98": 0.04, "99": 0.02})]

    return {
        "V1": ("id household", [int(homes[i]) for i in h]), "V2": ("other|qi|id|conf nominal|ordinal|numeric", nth(h.tolist())), "V3": ("id weight", [float(weights[i]) for i in h]), "V4": ("id|other|qi nominal", [int(v) for v in g.rng.choice([1012, 1044, 1101, 1207, 1215], 1400)]), "V5": ("qi nominal", g.ints(1, 3)), "V6": ("qi numeric whole", g.whole(47, 17, 18, 95).tolist()),
        "V7": ("qi|conf nominal|ordinal missing=98,99", item(6)), "V8": ("conf|qi nominal|ordinal|numeric missing=98,99", item(5)), "V9": ("conf|qi nominal|ordinal|numeric missing=98,99", item(5)), "V10": ("conf|qi nominal|ordinal|numeric missing=98,99", item(10)), "V11": ("conf numeric whole missing=999998,999999", [int(v) for v in g.marked(g.heavy(31000, 0.6, 0), {"999998": 0.08, "999999": 0.05})]),
        "V12": ("qi nominal", [int(v) for v in g.rng.choice([11, 12, 13, 21, 22, 31], 1400)]), "V13": ("conf|qi nominal", g.ints(0, 2)), "V14": ("id|conf|other|qi date %d-%b-%Y", g.days("2022-03-01", "2022-06-30", "%d-%b-%Y")),
    }  # fmt: skip


def clinic_ar() -> Columns:
    g, p, of = pair(1000, 640, 509)
    return {
        "رقم_الملف": ("id unit", of(p.serial(70011))), "الهوية": ("id", of([luhn(f"1{v}") for v in p.digits(8)])), "الاسم": ("id", of(named(p, ARABIC, ARABIC2))), "تاريخ_الميلاد": ("qi date %Y/%m/%d", of([f"{d:%Y/%m/%d}" for d in births(p, 1945, 2020)])), "الجنس": ("qi nominal", of(p.one("ذكر|أنثى"))), "الجوال": ("id", of([f"+9665{v}" for v in p.digits(8)])),
        "المدينة": ("qi nominal", of(p.one("الرياض|جدة|الدمام|أبها"))), "التشخيص": ("conf|qi nominal", g.one("السكري|ارتفاع الضغط|الربو|فقر الدم")), "الضغط": ("conf|qi|id nominal", glue("{}/{}", g.ints(95, 170), g.ints(55, 105))), "الوزن": ("conf|qi numeric", g.decimals(74, 14, 1)), "تاريخ_الزيارة": ("qi|conf date %Y/%m/%d", g.days("2023-01-01", "2023-12-31", "%Y/%m/%d")), "الطبيب": ("id", few(g, 9, ARABIC, ARABIC2, "د. {} {}")), "ملاحظات": ("id", glue("المريض {} يشكو من ألم شديد منذ {} أيام", g.rng.choice(ARABIC, 1000), g.ints(2, 20))),
    }  # fmt: skip


def tax_el() -> Columns:
    g = G("de", 1300, 510)
    born = births(g, 1940, 2001)
    income = g.rng.lognormal(9.6, 0.6, 1300).round(2)
    tax = (income * 0.18).round(2)
    return {
        "c01": ("id", [afm(v) for v in g.digits(8)]), "c02": ("id", each(amka, born, g.mask("####"))), "c03": ("id", named(g, GREEK, GREEK2, "{1} {0}")), "c04": ("qi|conf nominal", g.one("1101|1104|4211|8110")), "c05": ("qi nominal", g.one("έγγαμος|άγαμος|διαζευγμένος|χήρος")), "c06": ("qi|conf numeric|ordinal", g.ints(0, 5)), "c07": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in income]), "c08": ("conf numeric", [f"{v:.2f}".replace(".", ",") for v in tax]),
        "c09": ("id", glue("{} {}", g.one("Ερμού|Σταδίου|Λεωφ. Κηφισίας|Αγίου Δημητρίου"), g.ints(1, 180))), "c10": ("qi|id nominal", g.mask("1## ##", "54# ##")), "c11": ("qi|conf date %d/%m/%Y", g.days("2023-03-01", "2023-06-30", "%d/%m/%Y")), "c12": ("id", [f"69{v}" for v in g.digits(8)]), "c13": ("conf|qi nominal", g.one("μισθωτός|συνταξιούχος|αγρότης|ελεύθερος επαγγελματίας")),
    }  # fmt: skip


def staff_ru() -> Columns:
    g = G("de", 700, 511)
    return {
        "п1": ("id", g.serial(1001, 4)), "п2": ("id", named(g, RUSSIAN, RUSSIAN2, "{1} {0}")), "п3": ("id", [snils(v) for v in g.mask("1########")]), "п4": ("id", [inn(v) for v in g.mask("77########", "50########")]), "п5": ("id", g.mask("45 ## ######", "46 ## ######")), "п6": ("qi date %d.%m.%Y", [f"{d:%d.%m.%Y}" for d in births(g, 1958, 2002)]), "п7": ("qi nominal", g.one("м|ж")), "п8": ("qi|conf nominal", g.one("инженер|бухгалтер|водитель|начальник отдела|уборщица")),
        "п9": ("qi|conf nominal", g.one("Цех № 3|Бухгалтерия|Гараж|АХО")), "п10": ("conf numeric", [f"{v:,d},00".replace(",", " ", 1) for v in g.rng.integers(30, 180, 700) * 1000]), "п11": ("qi|conf date %d.%m.%Y", g.days("1999-01-01", "2023-06-01", "%d.%m.%Y")), "п12": ("id", glue("8 (9{}) {}-{}-{}", g.mask("##"), g.mask("###"), g.mask("##"), g.mask("##"))), "п13": ("id", [f"{v}@zavod.ru" for v in g.mask("g.####", "t.####")]), "п14": ("conf|qi numeric|ordinal", g.ints(0, 29)), "п15": ("id", glue("г. Подольск, ул. {}, д. {}, кв. {}", g.one("Ленина|Советская|Мира"), g.ints(1, 90), g.ints(1, 120))),
    }  # fmt: skip


def likert() -> Columns:
    g = G("en", 800, 512)
    items = {
        f"i{n:02d}": (
            "conf|qi ordinal|nominal|numeric missing=9",
            [int(v) for v in g.marked(g.ints(1, 8), {"9": 0.03})],
        )
        for n in range(1, 91)
    }
    return {
        "resp": ("id", g.mask("********")), "grp": ("qi ordinal|nominal", g.one("-25|26-35|36-50|51+")), "g": ("qi nominal", g.one("f|m|d|x")), **items, "sum_a": ("conf|qi numeric", [sum(int(c) for c in row) for row in zip(*[v for _, v in list(items.values())[:10]], strict=True)]),
        "draw": ("id", g.marked([f"{f.lower()}.{n.lower()}@uni-mail.org" for f, n in zip(g.rng.choice(MODERN, 800), g.rng.choice(MODERN2, 800), strict=True)], blank=0.4)), "dur_s": ("conf|qi numeric whole", g.heavy(900, 0.5, 0)), "txt": ("id", g.marked(glue("my line manager {} never listens to us {}", g.rng.choice(MODERN, 800), g.ints(2, 40)), blank=0.7)),
    }  # fmt: skip


def rides() -> Columns:
    g, d, of = pair(2200, 160, 513)
    start = g.moments("2023-09-01", "2023-09-30")
    lat, lon = g.rng.normal(41.88, 0.05, 2200), g.rng.normal(-87.63, 0.06, 2200)
    km = g.rng.exponential(6, 2200)
    rider = g.rng.integers(0, 700, 2200)
    hashes = [hashlib.sha256(f"{i}x".encode()).hexdigest() for i in range(700)]
    return {
        "f1": ("id", g.mask("********-****-4***-a***-************")), "f2": ("id unit", of(d.serial(88, 30))), "f3": ("id", of(d.mask("@@ #####", "@## ####"))), "f4": ("qi numeric|ordinal whole", of(d.ints(1955, 2001))), "f5": ("id", [hashes[i] for i in rider]), "f6": ("qi|conf|id numeric", [int(m.replace(tzinfo=dt.UTC).timestamp()) for m in start]),
        "f7": ("id|qi numeric", lat.round(6)), "f8": ("id|qi numeric", lon.round(6)), "f9": ("id", each(geohash, lat + 0.01, lon)), "f10": ("conf|qi numeric", km.round(2)), "f11": ("conf|qi numeric", (km * 1.9 + 3).round(2)), "f12": ("conf|qi numeric", g.marked(g.rng.exponential(2, 2200).round(2).tolist(), blank=0.3)), "f13": ("conf|qi ordinal|nominal|numeric", g.ints(1, 6)), "f14": ("conf|qi|other numeric|ordinal|nominal", [float(v) for v in g.rng.choice([1.0, 1.2, 1.5, 2.0], 2200)]), "f15": ("qi|conf nominal", of(d.one("sedan|SUV|EV"))),
    }  # fmt: skip


def jabs() -> Columns:
    g, p, of = pair(1500, 800, 514)
    born, female = births(p, 1938, 2015), p.ints(0, 2)
    who = of(list(range(800)))
    return {
        "rc": ("id unit", of(each(rodne, born, female, p.mask("###")))), "jmeno": ("id", of([str(v) for v in p.rng.choice(CZECH, 800)])), "prijmeni": ("id", of([str(v) for v in p.rng.choice(CZECH2, 800)])), "pohlavi": ("qi nominal", of(["Ž" if f else "M" for f in female])), "vek": ("qi numeric whole", of([2021 - b.year for b in born])), "pojistovna": ("qi|conf nominal", of(p.one("111|201|205|207|211"))), "obec": ("qi nominal", of(p.one("Kolín|Pečky|Český Brod|Týnec nad Labem"))),
        "vakcina": ("conf|qi nominal", g.one("Comirnaty|Spikevax|Vaxzevria")), "sarze": ("conf|qi|id nominal", g.one("EX3510|FE1573|ABV5300|3002185")), "davka": ("conf|qi|other ordinal|nominal|numeric", nth(who)), "datum": ("qi|conf date %d. %m. %Y", g.days("2021-01-10", "2021-12-20", "%d. %m. %Y")), "ockujici": ("id", few(g, 8, CZECH, CZECH2, "MUDr. {} {}")), "reakce": ("conf|qi nominal missing=neuvedeno", g.marked(g.one("žádná|bolest|teplota"), neuvedeno=0.1)), "tel": ("id", of([f"+420 {a} {b} {c}" for a, b, c in zip(p.mask("6##"), p.mask("###"), p.mask("###"), strict=True)])),
    }  # fmt: skip


def cdr() -> Columns:
    g, p, of = pair(2500, 300, 515)
    return {
        "k1": ("id unit", of([f"26201{v}" for v in p.digits(10)])), "k2": ("id", of([luhn(f"35{v}") for v in p.digits(12)])), "k3": ("id", of([f"49171{v}" for v in p.digits(7)])), "k4": ("id", [f"49{a}{b}" for a, b in zip(g.one("151|160|30|89"), g.digits(7), strict=True)]), "k5": ("qi|conf date %Y%m%d%H%M%S", shown(g.moments("2023-02-01", "2023-02-08"), "%Y%m%d%H%M%S")), "k6": ("conf|qi numeric whole", g.heavy(70, 1.1, 0)),
        "k7": ("qi|id nominal", g.mask("262-01-4#-1#")), "k8": ("conf|qi nominal", g.one("MOC|MTC|SMS|DATA")), "k9": ("qi numeric|ordinal whole", of(p.ints(1945, 2006))), "k10": ("qi|conf nominal", of(p.one("prepaid|flat S|flat XL"))), "k11": ("conf|qi numeric", g.heavy(12, 1.2)), "k12": ("id", g.mask("10.#.#.##", "10.1#.2.#")),
    }  # fmt: skip


def gym() -> Columns:
    g, p, of = pair(1600, 350, 516)
    come = g.moments("2024-01-02", "2024-03-31")
    return {
        "card": ("id unit", of(p.mask("GX-######"))), "member": ("id", of(named(p, MODERN, MODERN2))), "joined": ("qi|conf date %b %d, %Y", of([f"{d:%b %d, %Y}" for d in births(p, 2016, 2023)])), "plan": ("qi|conf nominal", of(p.one("off-peak|full|student|corporate"))), "yob": ("qi numeric|ordinal whole", of(p.ints(1948, 2008))), "sex": ("qi nominal missing=?", of(p.marked(p.one("F|M"), {"?": 0.05}))), "device": ("id", of(p.mask("**:**:**:**:**:**"))),
        "in": ("qi|conf date %d/%m/%Y %H:%M", shown(come, "%d/%m/%Y %H:%M")), "minutes": ("conf|qi numeric whole", g.whole(68, 22, 5, 300)), "locker": ("id|qi|conf|other nominal|ordinal", g.mask("M-0##", "F-0##")), "instagram": ("id", of(p.marked([f"@{f.lower()}_{n}" for f, n in zip(p.rng.choice(MODERN, 350), p.ints(1, 99), strict=True)], blank=0.4))), "emerg_contact": ("id", of(glue("{} {}", named(p, MODERN, MODERN2), p.mask("07### ######")))), "injury": ("conf|qi nominal missing?=none", g.marked(g.one("none|knee|back|shoulder"), {"none given": 0.05})),
    }  # fmt: skip


def donors() -> Columns:
    g, p, of = pair(1300, 500, 517)
    born = births(p, 1955, 2004)
    return {
        "m1": ("id unit", of(each(personnummer, born, p.mask("###")))), "m2": ("id", of(named(p, SWEDISH, SWEDISH2))), "m3": ("qi|conf nominal", of(p.one("A+|O+|B+|AB+|O-|A-"))), "m4": ("conf|qi numeric", g.whole(142, 12, 90, 190)), "m5": ("conf|qi numeric", [f"<{5}" if v < 5 else str(v) for v in g.whole(48, 30, 1, 300)]), "m6": ("qi|conf date %Y-%m-%d", g.days("2019-01-01", "2023-12-31", "%Y-%m-%d")), "m7": ("conf|qi nominal", g.marked(g.one("Resa|resa|Tatuering|Medicin|medicin "), blank=0.7)),
        "m8": ("id|qi|other|conf nominal", g.one("AKN|BLN|THM|EWK|SJO")), "m9": ("id", of([f"070-{a} {b} {c}" for a, b, c in zip(p.mask("###"), p.mask("##"), p.mask("##"), strict=True)])), "m10": ("qi|id nominal", of(p.mask("75# ##", "17# ##"))), "m11": ("conf|qi|other numeric|ordinal|nominal", nth(of(list(range(500))))), "m12": ("id", g.mask("G####/23######"))
    }  # fmt: skip


def residents() -> Columns:
    g = G("en", 1000, 518)
    born = births(g, 1938, 2021)
    h = g.rng.integers(0, 380, 1000)
    return {
        "户号": ("id household", [f"{3100500 + 7 * int(i)}" for i in h]), "姓名": ("id", named(g, CHINESE2, CHINESE, "{}{}")), "公民身份号码": ("id", each(resident, g.one("310104|310105|320102"), born, g.mask("###"))), "性别": ("qi nominal", g.one("男|女")), "出生日期": ("qi date %Y年%m月%d日", [f"{d:%Y年%m月%d日}" for d in born]), "与户主关系": ("qi|conf nominal", g.one("户主|配偶|子|女|母亲")), "民族": ("qi|conf nominal", g.one("汉族|回族|满族")),
        "文化程度": ("qi|conf nominal|ordinal", g.one("小学|初中|高中|大专|本科")), "职业": ("qi|conf nominal", g.one("教师|工人|退休|学生|个体")), "手机": ("id", [f"13{v}" for v in g.digits(9)]), "住址": ("id", glue("{}路{}弄{}号{}室", g.one("延安西|武宁|虹桥"), g.ints(1, 999), g.ints(1, 60), g.ints(101, 1804))), "月收入": ("conf numeric whole missing=不详", g.marked(g.heavy(6500, 0.5, 0), 不详=0.06)), "婚姻状况": ("qi|conf nominal", g.one("未婚|已婚|离异|丧偶")),
    }  # fmt: skip


def hotel() -> Columns:
    g = G("en", 900, 519)
    nights = g.ints(1, 9)
    rate = g.rng.integers(60, 320, 900) * 1000
    return {
        "h1": ("id", g.mask("R23####-##")), "h2": ("id", named(g, KOREAN2, KOREAN, "{}{}")), "h3": ("id", each(lambda d, s: f"{d:%y%m%d}-{s}******", births(g, 1950, 1999), g.one("1|2"))), "h4": ("id", glue("010-{}-{}", g.mask("####"), g.mask("####"))), "h5": ("qi|conf date %Y.%m.%d", [f"{d:%Y.%m.%d}" for d in births(g, 2022, 2023)]), "h6": ("conf|qi numeric|ordinal", nights), "h7": ("conf numeric whole", [int(v) for v in rate]), "h8": ("conf numeric whole", [int(r) * n for r, n in zip(rate, nights, strict=True)]),
        "h9": ("id", g.marked(glue("{}{} {}", g.mask("##"), g.one("가|나|다|라|마|허"), g.mask("####")), blank=0.4)), "h10": ("conf|qi nominal", g.one("온돌|트윈|더블|스위트")), "h11": ("id", [luhn(v) for v in g.mask("4518##########0", "94#############")]), "h12": ("conf|qi nominal", g.one("조식 포함|불포함")), "h13": ("id", g.mask("M########", "M###@####")), "h14": ("qi nominal", g.one("서울|부산|경기|제주")),
    }  # fmt: skip


def visas() -> Columns:
    g = G("en", 850, 520)
    born = births(g, 1950, 2004)
    family, first = g.rng.choice(MODERN2, 850), g.rng.choice(MODERN, 850)
    return {
        "x1": ("id", each(lambda f, n: f"P<GBR{n.upper().replace(' ', '<').replace(chr(39), '')}<<{f.upper().replace('-', '<')}".ljust(44, "<"), first, family)), "x2": ("id", g.mask("@########", "#########")), "x3": ("qi date %d%b%y", [f"{d:%d%b%y}".upper() for d in born]), "x4": ("qi nominal", g.one("GBR|IND|NGA|PHL|UKR|BRA")), "x5": ("qi nominal", g.one("F|M|X")), "x6": ("conf|qi nominal", g.one("H-1B|F-1|B-2|J-1|O-1")), "x7": ("qi|conf nominal", g.one("JFK|LAX|ORD|MIA|YYZ")),
        "x8": ("qi|conf date %d%b%Y", [f"{d:%d%b%Y}".upper() for d in births(g, 2021, 2023)]), "x9": ("conf|qi numeric whole", g.ints(1, 181)), "x10": ("qi|conf|id nominal", g.one("Acme Robotics Inc.|Lakeside University|Brightwell Hospital|self")), "x11": ("conf|qi nominal missing=N/A", g.marked(g.one("granted|refused|withdrawn"), {"N/A": 0.07})), "x12": ("id", g.mask("A#########")), "x13": ("id", each(lambda f, n: f"{f}.{n}@mail.example".replace(" ", "").lower(), first, g.ints(1, 9999))), "x14": ("conf|qi numeric", g.marked(g.heavy(62000, 0.5, 0), blank=0.5)),
    }  # fmt: skip


def meters() -> Columns:
    g = G("en", 750, 521)
    months = {f"m{n:02d}": g.rng.lognormal(5.4, 0.4, 750).round(1) for n in range(1, 13)}
    total = sum(months.values())
    return {
        "mpan": ("id", g.mask("12##########0")), "meter_sn": ("id", g.mask("E6S########## ".strip())), "premises": ("id", glue("{}, {} {}", g.mask("Flat #", "Flat ##"), g.ints(1, 200), g.one("Gordon Terrace|Mill Lane|Quayside|The Crescent"))), "pcode": ("qi|id nominal", g.mask("NE# #AB", "DH1 #XY", "SR# #JT")), "occupants": ("qi|conf numeric|ordinal whole", g.ints(1, 7)), "ev": ("conf|qi nominal", g.one("yes|no")), "heating": ("conf|qi nominal missing?=not", g.marked(g.one("gas|heat pump|oil|electric"), {"not known": 0.08})),
        **{name: ("conf|qi numeric", values) for name, values in months.items()}, "annual_kwh": ("conf|qi numeric", total.round(1)), "dd_amount": ("conf numeric", [f"£{v:.2f}" for v in g.rng.normal(120, 30, 750).clip(20)]), "arrears": ("conf numeric", [f"£{v:.2f}" for v in g.rng.exponential(30, 750)]), "psr_reason": ("conf|qi nominal", g.marked(g.one("dialysis|hearing|pensionable age|oxygen"), blank=0.8)),
    }  # fmt: skip


def union() -> Columns:
    g = G("en", 1050, 522)
    full = named(g, MODERN, MODERN2)
    return {
        "Mem No": ("id", [f"U{v:06d}" for v in g.serial(10021)]), "Title": ("id|qi nominal", g.one("Mr|Ms|Mrs|Dr|Mx")), "Full Name": ("id", full), "Known as": ("id", [n.split()[0] for n in full]), "Branch": ("qi|conf nominal", g.one("NW/104 Royal Mail|SE/022 Rail|MID/310 Health|NW/118 Bus")), "Workplace": ("qi|conf|id nominal", g.one("Crewe depot|Salford hub|Leyland|Preston DO")), "NI": ("id", g.mask("AB ## ## ## C", "JC ## ## ## A")), "Joined": ("qi|conf date %d/%m/%Y", g.days("1985-01-01", "2023-12-31", "%d/%m/%Y")), "Age": ("qi numeric whole", g.whole(46, 12, 17, 82)),
        "Ethnicity": ("qi|conf nominal missing?=prefer", g.marked(g.one("White British|Black African|Indian|Mixed"), {"prefer not to say": 0.1})), "Disability": ("conf|qi nominal missing?=prefer", g.marked(g.one("Yes|No"), {"Prefer not to say": 0.08})), "Sort code": ("id|qi|other|conf nominal", g.mask("20-##-##", "77-##-##")), "Account": ("id", g.mask("########")), "Subs pcm": ("conf|qi numeric|ordinal|nominal", [float(v) for v in g.rng.choice([6.5, 9.25, 14.75, 17.1], 1050)]), "Voted 2023": ("conf|qi nominal missing=-", g.marked(g.one("Y|N"), {"-": 0.12})), "Twitter": ("id", g.marked([f"@{n.split()[0]}{i}" for n, i in zip(full, g.ints(10, 99), strict=True)], blank=0.7)),
    }  # fmt: skip


def diary() -> Columns:
    g = G("en", 1000, 523)
    return {
        "wk": ("qi|conf|other ordinal|nominal|date", [f"2023-W{v:02d}" for v in g.ints(1, 53)]), "meal": ("conf|qi|other nominal|ordinal", g.one("breakfast|lunch|dinner|snack")), "food": ("conf|qi nominal", g.one("Caesar salad|Earl Grey|Graham crackers|Granny Smith|Victoria sponge")), "brand": ("conf|qi|other nominal", g.one("Ben & Jerry's|Dr Pepper|Uncle Ben|Mr Kipling|Aunt Bessie")), "gram": ("conf|qi numeric whole", g.heavy(140, 0.5, 0)), "kcal": ("conf|qi numeric whole", g.heavy(320, 0.5, 0)), "ean": ("conf|qi|other|id nominal", g.one("5000168001142|3017620422003|8076800195057")), "sat": ("conf|qi ordinal|numeric|nominal", g.ints(1, 6)), "grp": ("qi ordinal|nominal", g.one("18-34|35-54|55+")), "sx": ("qi nominal", g.one("1|2")), "mood": ("conf|qi ordinal|nominal", g.one("low|ok|good")), "steps": ("conf|qi numeric whole", g.heavy(7200, 0.5, 0)), "screen": ("conf|qi numeric", g.decimals(3.4, 1.4, 1)),
    }  # fmt: skip


ISO, COMMA = Dialect("%Y-%m-%d", ",", "."), Dialect("%Y-%m-%d", ";", ",")
FILES: dict[str, FirstFile] = {
    "parish register": FirstFile(parish, ISO), "call centre": FirstFile(calls, ISO), "laboratory export": FirstFile(lab, Dialect("%m/%d/%Y", "|", ".")), "court docket": FirstFile(docket, ISO), "pension ledger de": FirstFile(pensions, Dialect("%d.%m.%Y", ";", ",")),
    "farm census pt": FirstFile(farms, Dialect("%Y-%m-%d", ";", ".")), "exam with parents tr": FirstFile(exams, Dialect("%d.%m.%Y", ";", ",")), "survey, labelled": FirstFile(survey, ISO, ".dta"), "clinic ar": FirstFile(clinic_ar, Dialect("%Y/%m/%d", ",", ".")), "tax el": FirstFile(tax_el, COMMA), "staff ru": FirstFile(staff_ru, COMMA),
    "ninety items": FirstFile(likert, Dialect("%Y-%m-%d", "\t", ".")), "rides": FirstFile(rides, ISO), "jabs cz": FirstFile(jabs, Dialect("%d. %m. %Y", ";", ",")), "call records": FirstFile(cdr, Dialect("%Y%m%d", ";", ".")), "gym": FirstFile(gym, ISO), "blood donors sv": FirstFile(donors, ISO), "residents zh": FirstFile(residents, ISO), "hotel ko": FirstFile(hotel, ISO), "visas": FirstFile(visas, ISO),
    "meters": FirstFile(meters, ISO), "union members": FirstFile(union, ISO), "control: diary": FirstFile(diary, ISO),
}  # fmt: skip
