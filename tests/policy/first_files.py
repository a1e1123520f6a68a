"""Files as people have them, with what a careful steward would say of each column.

Every file is made from a seed; `FILES` names them. An answer is written `role kind`, each with its
alternatives by a bar, and then what else is known: `unit` (numbers the persons), `household`,
`weight`, `whole` (whole numbers), a date format, and `missing=` with the marks between commas.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import sample
from shoal.core import Column, Kind, Role, Schema

Columns = dict[str, tuple[str, Any]]


@dataclass(frozen=True)
class Dialect:
    """How a country writes its files."""

    date: str
    delimiter: str = ";"
    decimal: str = ","
    missing: str = ""
    encoding: str = "utf-8"


DIALECTS = {
    "en": Dialect("%m/%d/%Y", ",", ".", "NA"),
    "de": Dialect("%d.%m.%Y", missing="k.A.", encoding="cp1252"),
    "fr": Dialect("%d/%m/%Y", missing="."),
    "es": Dialect("%d/%m/%Y", missing="s/d"),
    "it": Dialect("%d/%m/%Y", missing="n.d."),
    "nl": Dialect("%d-%m-%Y", missing=""),
}
NAMES = {
    "en": "Smith Jones Taylor Brown Wilson Evans Thomas Walker Wright Hughes",
    "de": "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Köhler",
    "fr": "Martin Bernard Dubois Thomas Robert Richard Petit Durand Leroy Moreau",
    "es": "García Fernández González Rodríguez López Martínez Sánchez Pérez Gómez Ruiz",
    "it": "Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco",
    "nl": "Jansen Bakker Visser Smit Meijer Mulder Bos Vos Peters Hendriks",
}
REMARKS = {
    "en": "Patient reports pain since Tuesday, was seen by Dr. {} before",
    "de": "Patient klagt seit Dienstag über Schmerzen, war vorher bei Dr. {}",
    "fr": "Le patient se plaint de douleurs depuis mardi, vu par le Dr {}",
    "es": "El paciente refiere dolor desde el martes, visto por el Dr. {}",
    "it": "Il paziente lamenta dolore da martedì, visto dal dott. {}",
    "nl": "Patiënt heeft sinds dinsdag pijn, eerder gezien door dr. {}",
}
SEXES = {
    "en": "male female",
    "de": "m w d",
    "fr": "H F",
    "es": "H M",
    "it": "M F",
    "nl": "man vrouw",
}


class Maker:
    """Draws columns in the way of a country."""

    def __init__(self, language: str, rows: int, seed: int) -> None:
        self.language, self.rows, self.dialect = language, rows, DIALECTS[language]
        self.rng = np.random.default_rng(seed)

    def pick(self, *values: str) -> list[str]:
        shares = self.rng.dirichlet(np.full(len(values), 3.0))
        return [str(v) for v in self.rng.choice(values, self.rows, p=shares)]

    def whole(self, mean: float, spread: float, low: float = 0, high: float = 1e9) -> np.ndarray:
        return np.clip(self.rng.normal(mean, spread, self.rows), low, high).astype(np.int64)

    def decimals(self, mean: float, spread: float, digits: int = 2) -> list[str]:
        drawn = np.abs(self.rng.normal(mean, spread, self.rows))
        return [f"{v:.{digits}f}".replace(".", self.dialect.decimal) for v in drawn]

    def days(self, first: str, last: str, form: str | None = None) -> list[str]:
        start, end = np.datetime64(first), np.datetime64(last)
        days = start + self.rng.integers(0, (end - start).astype(int), self.rows)
        return [day.astype(object).strftime(form or self.dialect.date) for day in days]

    def lacking(self, values: Any, mark: str | None = None, share: float = 0.04) -> list[Any]:
        mark = self.dialect.missing if mark is None else mark
        gone = self.rng.random(self.rows) < share
        return [mark if lost else str(v) for lost, v in zip(gone, values, strict=True)]

    def people(self) -> list[str]:
        family = NAMES[self.language].split()
        return [f"{family[i]} {chr(65 + j)}." for i, j in self.rng.integers(0, 10, (self.rows, 2))]

    def digits(self, length: int, *, first: int = 1) -> list[str]:
        low = 10 ** (length - 1) if first else 0
        return [f"{v:0{length}d}" for v in self.rng.integers(low, 10**length, self.rows)]

    def marks(self) -> str:
        return f" missing={self.dialect.missing}" if self.dialect.missing else ""


HOSPITAL = {
    "en": "CaseNumber PatientID Surname DateOfBirth Sex ZIP AdmissionDate AdmissionTime DischargeDate "
    "Ward ICD10 DRG LengthOfStay BodyWeight Height SystolicBP Insurance Remarks TotalCosts Hospital",
    "de": "Fallnummer PatNr Nachname Geburtsdatum Geschlecht PLZ Aufnahmedatum Uhrzeit Entlassdatum "
    "Station ICD DRG Verweildauer Gewicht Größe RR_sys Krankenkasse Bemerkung Kosten Klinik",
    "fr": "NumDossier IdPatient Nom DateNaissance Sexe CodePostal DateEntree Heure DateSortie "
    "Service CIM10 GHM DureeSejour Poids Taille TensionSys Mutuelle Commentaire Cout Hopital",
    "es": "NumExpediente NHC Apellidos FechaNacimiento Sexo CP FechaIngreso Hora FechaAlta "
    "Servicio CIE10 GRD Estancia Peso Talla TensionSist Aseguradora Observaciones Coste Hospital",
    "it": "NumeroPratica IdPaziente Cognome DataNascita Sesso CAP DataRicovero Ora DataDimissione "
    "Reparto ICD9 DRG Degenza Peso Altezza PressioneSist Assicurazione Note Costo Ospedale",
    "nl": "Zaaknummer PatientNr Achternaam Geboortedatum Geslacht Postcode Opnamedatum Tijd "
    "Ontslagdatum Afdeling ICD10 DBC Ligduur Gewicht Lengte BloeddrukSys Verzekeraar Opmerking Kosten Ziekenhuis",
}


def hospital(language: str, seed: int) -> Columns:
    make = Maker(language, 900, seed)
    date = make.dialect.date
    postcode = make.digits(5, first=0)
    if language == "nl":
        postcode = [
            f"{code[:4]} {a}{b}"
            for code, a, b in zip(
                make.digits(4), make.pick("A", "K", "X"), make.pick("B", "N", "Z"), strict=True
            )
        ]
    if language in {"en", "de"}:  # few areas, some with a leading zero
        postcode = make.pick("01067", "04103", "10115", "20095", "50667", "80331")
    icd = make.pick("I10", "E11.9", "J45.0", "F32.1", "M54.5", "K21.0", "S72.0", "C50.9")
    remark = REMARKS[language]
    values = [
        ("id", [f"{2023000000 + i}" for i in make.rng.permutation(make.rows)]),
        ("id unit", [f"{v}" for v in make.rng.integers(100000, 100700, make.rows)]),
        ("id", make.people()),
        (f"qi date {date}", make.days("1931-01-01", "2015-01-01")),
        ("qi nominal", make.pick(*SEXES[language].split())),
        ("qi|id nominal", postcode),
        (f"qi date {date}", make.days("2023-01-01", "2023-12-01")),
        ("qi|id", [f"{h:02d}:{m:02d}" for h, m in zip(make.rng.integers(0, 24, make.rows), make.rng.integers(0, 60, make.rows), strict=True)]),
        (f"qi date {date}", make.days("2023-12-02", "2023-12-30")),
        ("qi nominal", make.pick("A1", "A2", "B1", "INT")),
        ("conf|qi nominal", icd),
        ("conf|qi nominal", make.pick("F62B", "E77I", "G67A", "I44C", "B80Z")),
        ("conf|qi numeric whole", make.whole(6, 4, 1)),
        ("qi|conf numeric" + make.marks(), make.lacking(make.decimals(76, 14, 1))),
        ("qi|conf numeric whole", make.whole(171, 9, 120, 210)),
        ("conf numeric whole missing=-99", make.lacking(make.whole(128, 15, 80, 220), "-99")),
        ("qi nominal" + make.marks(), make.lacking(make.pick("AOK", "TK", "BKK", "Private"))),
        ("id", [remark.format(name) for name in make.people()]),
        ("conf numeric", make.decimals(4100, 1500)),
        ("other|qi|conf nominal", ["North General"] * make.rows),
    ]  # fmt: skip
    return dict(zip(HOSPITAL[language].split(), values, strict=True))


HOUSEHOLDS = {
    "en": "hh_id person_no relationship age sex region education employment hours_worked income "
    "own_rent rooms final_weight stratum psu interview_date wave children",
    "de": "Haushaltsnummer lfd_Nr Stellung Alter Geschlecht Bundesland Bildung Erwerbsstatus Arbeitsstunden "
    "Nettoeinkommen Wohnverhältnis Zimmer Hochrechnungsfaktor Schicht PSU Interviewdatum Welle Kinder",
    "fr": "id_menage num_ind lien age sexe departement diplome emploi heures revenu statut_occupation "
    "pieces ponderation strate upe date_enquete vague enfants",
    "es": "id_hogar num_persona parentesco edad sexo provincia estudios empleo horas ingresos tenencia "
    "habitaciones factor_expansion estrato upm fecha_entrevista ola hijos",
    "it": "id_famiglia num_componente parentela eta sesso regione istruzione lavoro ore reddito titolo "
    "stanze peso strato upa data_intervista onda figli",
    "nl": "huishoudnr volgnr relatie leeftijd geslacht provincie opleiding werk uren inkomen eigendom "
    "kamers weegfactor stratum psu interviewdatum golf kinderen",
}
EDUCATION = {
    "en": "none, primary, secondary, tertiary", "de": "Hauptschule, Realschule, Abitur, Hochschule",
    "fr": "aucun, primaire, secondaire, supérieur",
    "es": "sin estudios, primaria, secundaria, universitaria",
    "it": "nessuno, primaria, secondaria, laurea", "nl": "laag, midden, hoog",
}  # fmt: skip


def households(language: str, seed: int) -> Columns:
    make = Maker(language, 1200, seed)
    date = make.dialect.date
    sizes = make.rng.integers(1, 6, 600)
    home = np.repeat(np.arange(sizes.size) + 30001, sizes)[: make.rows]
    place = np.concatenate([np.arange(1, s + 1) for s in sizes])[: make.rows]
    education = make.pick(*EDUCATION[language].split(", "))
    values = [
        ("id household", home),
        ("other|qi|id nominal|ordinal|numeric", place),
        ("qi nominal", make.pick("1", "2", "3", "4")),
        ("qi numeric whole", make.whole(42, 20, 0, 99)),
        ("qi nominal", make.pick("1", "2")),
        ("qi nominal", make.pick("Nord", "Ost", "Sud", "West")),
        ("qi nominal|ordinal", education),
        ("qi nominal", make.pick("employed", "inactive", "unemployed")),
        ("qi|conf numeric whole", make.whole(33, 12, 0, 80)),
        ("conf numeric missing=-99", make.lacking(make.decimals(2400, 900), "-99", 0.1)),
        ("qi|conf nominal", make.pick("owner", "tenant", "other")),
        ("qi|conf numeric|ordinal|nominal", make.whole(4, 1.5, 1, 9)),
        ("id weight", make.decimals(812, 260, 4)),
        ("qi|other|id nominal", make.pick("101", "102", "201", "202")),
        ("qi|other|id nominal", make.digits(4)),
        (f"qi|other date {date}", make.days("2022-03-01", "2022-06-30")),
        ("other|qi nominal|ordinal|numeric", ["3"] * make.rows),
        ("qi numeric|ordinal|nominal", make.whole(1.2, 1.1, 0, 6)),
    ]
    return dict(zip(HOUSEHOLDS[language].split(), values, strict=True))


PURCHASES = {
    "en": "transaction_id customer_id card_number timestamp amount currency mcc store_zip channel balance items",
    "de": "Buchungsnr Kundennummer Kartennummer Zeitpunkt Betrag Währung Branche Filial_PLZ Kanal Saldo Artikelzahl",
    "fr": "id_transaction num_client num_carte horodatage montant devise mcc code_postal canal solde quantite",
    "es": "id_transaccion id_cliente num_tarjeta fecha_hora importe moneda mcc cp_tienda canal saldo cantidad",
    "it": "id_transazione id_cliente num_carta data_ora importo valuta mcc cap_negozio canale saldo quantita",
    "nl": "transactienr klantnummer kaartnummer tijdstip bedrag valuta mcc winkel_postcode kanaal saldo aantal",
}


def purchases(language: str, seed: int) -> Columns:
    make = Maker(language, 4000, seed)
    date = make.dialect.date
    form = f"{date} %H:%M:%S"
    customer = make.rng.integers(0, 669, make.rows)
    hours = [
        f"{h:02d}:{m:02d}:{s:02d}" for h, m, s in make.rng.integers(0, [24, 60, 60], (make.rows, 3))
    ]
    values = [
        ("id", np.arange(make.rows) + 5_000_001),
        ("id unit", [f"{70000 + c}" for c in customer]),
        ("id", [f"5{v:015d}" for v in customer.astype(np.int64) * 10**9 + 7]),
        (f"qi date {form}", [f"{a} {b}" for a, b in zip(make.days("2024-01-01", "2024-12-30"), hours, strict=True)]),
        ("conf numeric", make.decimals(48, 30)),
        ("other|qi|conf nominal", ["EUR"] * make.rows),
        ("conf|qi nominal", make.pick("5411", "5812", "4111", "5999", "7011")),
        ("qi nominal", make.pick("01067", "04103", "10115", "20095", "50667")),
        ("qi|conf|other nominal", make.pick("app", "counter", "web")),
        ("conf numeric", make.decimals(2100, 900)),
        ("conf|qi numeric|nominal|ordinal", make.whole(4, 2, 1, 30)),
    ]  # fmt: skip
    return dict(zip(PURCHASES[language].split(), values, strict=True))


SCHOOL = {
    "en": "student_id last_name class grade_level birth_date gender postcode home_language math_score "
    "reading_score final_grade absences special_needs comment",
    "de": "Schülernummer Name Klasse Jahrgangsstufe Geburtstag Geschlecht PLZ Muttersprache Mathematik_Punkte "
    "Lesen_Punkte Note Fehltage Förderbedarf Bemerkung",
    "fr": "num_eleve nom_famille classe niveau date_naissance sexe code_postal langue_maison points_maths "
    "points_lecture note absences besoins commentaire",
    "es": "num_alumno apellido clase curso fecha_nacimiento sexo codigo_postal lengua puntos_mate "
    "puntos_lectura nota faltas necesidades observaciones",
    "it": "matricola cognome classe anno_corso data_nascita sesso cap lingua punti_mate punti_lettura voto "
    "assenze sostegno osservazioni",
    "nl": "leerlingnummer achternaam klas leerjaar geboortedatum geslacht postcode thuistaal punten_rekenen "
    "punten_lezen cijfer verzuim zorgbehoefte opmerking",
}


def school(language: str, seed: int) -> Columns:
    make = Maker(language, 700, seed)
    date = make.dialect.date
    level = make.pick("5", "6", "7", "8")
    values = [
        ("id", [f"S{v}" for v in make.rng.permutation(make.rows) + 10000]),
        ("id", make.people()),
        ("qi nominal", [f"{v}{c}" for v, c in zip(level, make.pick("a", "b", "c"), strict=True)]),
        ("qi|conf nominal|ordinal|numeric", level),
        (f"qi date {date}", make.days("2009-08-01", "2014-08-01")),
        ("qi nominal", make.pick(*SEXES[language].split())),
        ("qi nominal", make.pick("01067", "04103", "10115", "20095")),
        ("qi|conf nominal", make.pick("one", "two", "three", "other")),
        ("conf numeric whole" + make.marks(), make.lacking(make.whole(540, 80, 200, 800))),
        ("conf numeric whole missing=999", make.lacking(make.whole(61, 14, 0, 100), "999")),
        ("conf ordinal|nominal|numeric", make.pick("1", "2", "3", "4", "5")),
        ("conf|qi numeric whole", make.whole(7, 5, 0, 60)),
        ("conf|qi nominal", make.pick("yes", "no")),
        ("id", [f"{name} - {REMARKS[language].format(name)}" for name in make.people()]),
    ]
    return dict(zip(SCHOOL[language].split(), values, strict=True))


SAMPLE = {
    "name": "id", "person": "id unit", "household": "id household", "age": "qi numeric whole",
    "sex": "qi nominal", "region": "qi nominal", "education": "qi nominal|ordinal",
    "marital": "qi nominal", "hours": "conf|qi numeric whole", "occupation": "conf|qi nominal",
    "income": "conf numeric whole", "tax": "conf numeric whole", "condition": "conf nominal",
    "weight": "id weight", "batch": "other nominal|ordinal",
}  # fmt: skip
GERMAN = dict(zip(SAMPLE, ["Name", "PersonenNr", "HaushaltsNr", "Alter", "Geschlecht", "Region", "Bildung", "Familienstand", "Stunden", "Beruf", "Einkommen", "Steuer", "Erkrankung", "Gewichtung", "Welle"], strict=True))  # fmt: skip
SHORT = dict(zip(SAMPLE, ["NAME", "PID", "HHID", "AGE", "SEX", "REG", "EDU", "MARSTAT", "HRS", "OCC", "INC", "TAX", "COND", "WGT", "WAVE"], strict=True))  # fmt: skip


def of_sample(names: Mapping[str, str] | None = None, rows: int = 2000) -> Columns:
    frame = sample.load().head(rows)
    return {(names or {}).get(n, n): (SAMPLE[n], frame[n].to_list()) for n in SAMPLE}


ADULT = {
    "age": "qi numeric whole", "workclass": "qi|conf nominal", "fnlwgt": "id weight",
    "education": "qi nominal|ordinal", "education-num": "qi numeric|ordinal|nominal",
    "marital-status": "qi nominal", "occupation": "qi|conf nominal", "relationship": "qi nominal",
    "race": "qi nominal", "sex": "qi nominal", "capital-gain": "conf numeric whole",
    "capital-loss": "conf numeric whole", "hours-per-week": "qi|conf numeric whole",
    "native-country": "qi nominal", "income": "conf nominal|ordinal",
}  # fmt: skip
CENSUS = {"AFNLWGT": "id weight"} | dict.fromkeys(
    [
        "AGI",
        "EMCONTRB",
        "FEDTAX",
        "PTOTVAL",
        "STATETAX",
        "TAXINC",
        "POTHVAL",
        "INTVAL",
        "PEARNVAL",
        "FICA",
        "WSALVAL",
        "ERNVAL",
    ],
    "conf|qi numeric whole",
)
EIA = {
    "UTILITYID": "id|qi nominal", "UTILNAME": "id|qi nominal", "STATE": "qi nominal",
    "YEAR": "qi|other numeric|nominal|ordinal", "MONTH": "qi|other nominal|ordinal|numeric",
} | dict.fromkeys(
    ["RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES", "OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"],
    "conf|qi numeric whole",
)  # fmt: skip
ACS = {
    "PUMA": "qi nominal", "AGEP": "qi numeric whole", "SEX": "qi nominal", "MSP": "qi nominal missing?=N",
    "HISP": "qi nominal", "RAC1P": "qi nominal", "NOC": "qi nominal|ordinal|numeric missing?=N",
    "NPF": "qi nominal|ordinal|numeric missing?=N", "HOUSING_TYPE": "qi nominal",
    "OWN_RENT": "qi nominal", "DENSITY": "qi numeric", "INDP": "qi nominal missing?=N",
    "INDP_CAT": "qi nominal|ordinal missing?=N", "EDU": "qi nominal|ordinal missing?=N",
    "PINCP": "conf|qi numeric missing?=N", "PINCP_DECILE": "conf|qi nominal|ordinal missing?=N",
    "POVPIP": "conf|qi numeric whole missing?=N", "DVET": "conf|qi nominal missing?=N", "DREM": "conf|qi nominal missing?=N",
    "DPHY": "conf|qi nominal missing?=N", "DEYE": "conf|qi nominal", "DEAR": "conf|qi nominal",
    "PWGTP": "id weight", "WGTP": "id weight",
}  # fmt: skip


def reference(name: str, answers: Mapping[str, str], folder: Path) -> Columns:
    frame = pl.read_csv(folder / f"{name}.csv", infer_schema=False)
    return {column: (answers[column], frame[column].to_list()) for column in frame.columns}


def staff(seed: int) -> Columns:
    make = Maker("en", 800, seed)
    base = make.whole(52000, 9000, 20000)
    bonus = make.whole(4000, 1500)
    return {
        "EmployeeNumber": ("id unit", make.rng.permutation(make.rows) + 10001),
        "Email": ("id", [f"user{i}@example.org" for i in range(make.rows)]),
        "DOB": ("qi date %Y-%m-%d", make.days("1958-01-01", "2003-01-01", "%Y-%m-%d")),
        "Gender": ("qi nominal", make.pick("F", "M", "X")),
        "Department": ("qi nominal", make.pick("Sales", "Legal", "IT", "HR")),
        "JobTitle": ("qi nominal", make.pick("Analyst", "Manager", "Clerk", "Director")),
        "ISCO08": ("qi|conf nominal", make.pick("2411", "1211", "4110", "3313")),
        "Office": ("qi nominal", make.pick("London", "Leeds", "York")),
        "Postcode": ("qi|id nominal", [f"LS{a} {b}AB" for a, b in make.rng.integers(1, 9, (make.rows, 2))]),
        "BaseSalary": ("conf numeric whole", base),
        "Bonus": ("conf|qi numeric whole", bonus),
        "TotalPay": ("conf|qi numeric whole", base + bonus),
        "SickDays": ("conf|qi numeric whole", make.whole(6, 5)),
        "PerformanceRating": ("conf|qi ordinal|nominal", make.pick("poor", "good", "very good", "excellent")),
        "UnionMember": ("conf|qi nominal", make.pick("true", "false")),
        "FTE": ("qi|conf numeric", make.pick("0.5", "0.8", "1.0")),
        "Country": ("other|qi nominal", ["UK"] * make.rows),
    }  # fmt: skip


def trial(seed: int) -> Columns:
    make = Maker("en", 400, seed)
    return {
        "subject": (
            "id unit",
            [f"{site}-{i:04d}" for i, site in enumerate(make.pick("01", "02", "03"))],
        ),
        "site": ("qi nominal", make.pick("01", "02", "03")),
        "arm": ("other|qi|conf nominal", make.pick("placebo", "verum")),
        "age_group": ("qi ordinal|nominal", make.pick("<18", "18-24", "25-64", "65+")),
        "sex": ("qi nominal", make.pick("0", "1")),
        "visit_date": ("qi date %d%b%Y", make.days("2021-01-01", "2022-12-01", "%d%b%Y")),
        "bmi": ("qi|conf numeric missing=-9", make.lacking(make.decimals(26, 4, 1), "-9")),
        "hba1c": ("conf numeric missing=.", make.lacking(make.decimals(6, 1, 1), ".")),
        "smoker": ("conf|qi nominal", make.pick("never", "former", "current")),
        "pain_0_10": ("conf|qi numeric|ordinal|nominal", make.whole(4, 2, 0, 10)),
        "adverse_event": ("conf|qi nominal", make.pick("Y", "N")),
        "outcome": ("conf|qi nominal", make.pick("improved", "unchanged", "worse")),
        "visits": ("conf|qi numeric|ordinal|nominal", make.whole(3, 1, 1, 6)),
    }


def weekdays(seed: int) -> Columns:
    """Dates whose days and months nobody can tell apart, and other traps."""
    make = Maker("en", 500, seed)
    days = [f"{d:02d}/{m:02d}/2022" for d, m in make.rng.integers(1, 13, (make.rows, 2))]
    height = make.whole(172, 9, 140, 210)
    return {
        "respondent": ("id unit", np.arange(make.rows) + 1),
        "birth_year": ("qi numeric whole", make.whole(1970, 15, 1930, 2004)),
        "zip": ("qi|id nominal", make.digits(5)),
        "weight": ("qi|conf numeric whole", make.whole(78, 14, 40, 160)),
        "height": ("qi|conf numeric whole", height),
        "height_cm": ("qi|conf numeric whole", height),
        "interviewed": ("qi|other date ?", days),
        "religion": ("conf|qi nominal", make.pick("none", "one", "another")),
        "voted": ("conf|qi nominal", make.pick("yes", "no", "refused")),
        "trust": ("conf|qi ordinal|nominal", make.pick("never", "rarely", "sometimes", "often")),
        "siblings": ("qi numeric|ordinal|nominal", make.whole(1.5, 1.2, 0, 8)),
        "phone": ("id", [f"07{v}" for v in make.digits(9)]),
        "income_band": ("conf|qi ordinal|nominal", make.pick("<10k", "10k-30k", "30k-60k", "60k+")),
        "score_total": ("conf numeric", make.decimals(31, 8)),
    }


@dataclass(frozen=True)
class FirstFile:
    """A file, how it is written, and its answers."""

    make: Callable[[], Columns]
    dialect: Dialect
    suffix: str = ".csv"


US, PLAIN = DIALECTS["en"], Dialect("%Y-%m-%d", ",", ".")
FILES: dict[str, FirstFile] = {
    "sample": FirstFile(of_sample, PLAIN, ".parquet"),
    "sample as CSV": FirstFile(of_sample, PLAIN),
    "sample in German": FirstFile(lambda: of_sample(GERMAN), DIALECTS["de"]),
    "sample, short names": FirstFile(lambda: of_sample(SHORT), Dialect("%Y-%m-%d", "\t", ".")),
    "sample as SPSS": FirstFile(of_sample, PLAIN, ".sav"),
    "sample as Stata": FirstFile(of_sample, PLAIN, ".dta"),
    "staff": FirstFile(lambda: staff(1), US),
    "trial": FirstFile(lambda: trial(2), PLAIN),
    "survey": FirstFile(lambda: weekdays(3), US),
    **{f"hospital {c}": FirstFile(lambda c=c, i=i: hospital(c, 10 + i), DIALECTS[c]) for i, c in enumerate(DIALECTS)},
    **{f"households {c}": FirstFile(lambda c=c, i=i: households(c, 20 + i), DIALECTS[c]) for i, c in enumerate(DIALECTS)},
    **{f"purchases {c}": FirstFile(lambda c=c, i=i: purchases(c, 30 + i), DIALECTS[c]) for i, c in enumerate(DIALECTS)},
    **{f"school {c}": FirstFile(lambda c=c, i=i: school(c, 40 + i), DIALECTS[c]) for i, c in enumerate(DIALECTS)},
}  # fmt: skip
REFERENCE = {"adult": ADULT, "census": CENSUS, "eia": EIA, "acs": ACS}


def write(file: FirstFile, path: Path) -> dict[str, str]:
    """Write a file to a path without its suffix, and give its answers by column."""
    columns = file.make()
    frame = pl.DataFrame({name: values for name, (_, values) in columns.items()}, strict=False)
    if file.suffix == ".parquet":
        frame.write_parquet(path.with_suffix(".parquet"))
    elif file.suffix == ".csv":
        text = frame.write_csv(separator=file.dialect.delimiter)
        path.with_suffix(".csv").write_bytes(text.encode(file.dialect.encoding))
    else:
        import pyreadstat  # noqa: PLC0415  # an extra

        writer = pyreadstat.write_sav if file.suffix == ".sav" else pyreadstat.write_dta
        more: dict[str, Any] = (
            {"variable_measure": dict.fromkeys(("age", "hours", "income", "tax", "weight"), "scale")
             | dict.fromkeys(("sex", "region", "marital", "occupation", "condition"), "nominal")
             | {"education": "ordinal"}}
            if file.suffix == ".sav" else {}
        )  # fmt: skip
        writer(frame.to_pandas(), str(path.with_suffix(file.suffix)), **more)
    return {name: answer for name, (answer, _) in columns.items()}


SHORT_ROLES = {
    Role.IDENTIFIER: "id",
    Role.QUASI_IDENTIFIER: "qi",
    Role.CONFIDENTIAL: "conf",
    Role.OTHER: "other",
}
FLAGS = {"unit": "privacy_unit", "household": "household"}
PROTECTED = {"id", "qi"}


@dataclass
class Score:
    """How many questions were asked about columns, how many answers were right, and which not.

    `published` counts the worst errors: a protected cell that would be published as it is, or a
    code that would be averaged; `needless` columns protected or dropped without need.
    """

    asked: Counter[str]
    right: Counter[str]
    wrong: list[str]

    def __add__(self, other: "Score") -> "Score":
        return Score(self.asked + other.asked, self.right + other.right, self.wrong + other.wrong)

    def share(self, what: str) -> float:
        return self.right[what] / max(self.asked[what], 1)


def judged(answers: Mapping[str, str], schema: Schema) -> Score:
    """Score a drafted schema against the answers."""
    score = Score(Counter(), Counter(), [])
    for column in schema.columns:
        for what, right in _judgements(answers[column.name], column):
            score.asked[what] += 1
            score.right[what] += right
            if not right:
                found = f"{column.role} {column.kind} {column.date_format} {column.missing}"
                score.wrong.append(f"{column.name}: {what}: {found}, not {answers[column.name]}")
    return score


def _judgements(answer: str, column: Column) -> Iterator[tuple[str, bool]]:
    roles, kinds, *_ = [*(word.split("|") for word in answer.split()), []]
    kinds = [kind for kind in kinds if kind in set(Kind)]
    role = SHORT_ROLES[column.role]
    yield "role", role in roles
    yield "not published", role in PROTECTED or not set(roles) <= PROTECTED
    yield "not needless", role in roles or (role not in PROTECTED)
    for flag in FLAGS.keys() & set(answer.split()):
        yield "unit", bool(getattr(column, FLAGS[flag]))
    if role == "id":
        return
    if kinds:
        yield "kind", column.kind in kinds
        yield "not averaged", column.kind is not Kind.NUMERIC or Kind.NUMERIC in kinds
    if form := re.search(r"%.*?(?= missing|$)", answer):
        yield "date", (column.date_format or "%Y-%m-%d").partition(" until ")[0] == form[0]
    marks = re.search(r"missing(\??)=(\S*)", answer)
    if marks is None or not marks[1]:
        wanted = set(marks[2].split(",")) if marks else set()
        if wanted or set(column.missing) - {"nan"}:
            yield "missing", wanted <= set(column.missing) and bool(wanted)
    if "whole" in answer and column.kind is Kind.NUMERIC:
        yield "whole", column.step is not None and column.step % 1 == 0
