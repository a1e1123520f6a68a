"""Write small Excel workbooks: no package that we install does."""

import zipfile
from datetime import date, datetime
from xml.sax.saxutils import escape, quoteattr

OFFICE = "http://schemas.openxmlformats.org"
MAIN = f"{OFFICE}/spreadsheetml/2006/main"
LINKS = f"{OFFICE}/officeDocument/2006/relationships"
PACKAGE = f"{OFFICE}/package/2006"
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/></cellXfs></styleSheet>'
)
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 (a workbook has no zone)


class Xml(str):
    """A cell in its own words, without its place."""

    __slots__ = ()


def cell(value, place):
    where = f'r="{place}"'
    if isinstance(value, Xml):
        return value.replace("<c", f"<c {where}", 1)
    if isinstance(value, bool):
        return f'<c {where} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime):
        return f'<c {where} s="2"><v>{(value - FIRST_DAY).total_seconds() / 86400!r}</v></c>'
    if isinstance(value, date):
        return f'<c {where} s="1"><v>{(value - FIRST_DAY.date()).days}</v></c>'
    if isinstance(value, int | float):
        return f"<c {where}><v>{value!r}</v></c>"
    return f'<c {where} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def write(path, sheets, *, merged=()):
    """Write sheets, by name, of rows of cells; none is an empty cell."""
    numbered = list(enumerate(sheets.items(), start=1))
    names = "".join(f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="r{n}"/>'
                    for n, (name, _) in numbered)  # fmt: skip
    links = "".join(
        f'<Relationship Id="r{n}" Type="{LINKS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n, _ in numbered
    )
    office = f'<Relationship Id="o" Type="{LINKS}/officeDocument" Target="xl/workbook.xml"/>'
    styles = f'<Relationship Id="s" Type="{LINKS}/styles" Target="styles.xml"/>'
    merges = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types"/>')
        archive.writestr("_rels/.rels", _linked(office))
        archive.writestr("xl/_rels/workbook.xml.rels", _linked(links + styles))
        archive.writestr("xl/styles.xml", STYLES)
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets>{names}</sheets></workbook>',
        )
        for number, (_, rows) in numbered:
            data = "".join(
                f'<row r="{r}">'
                + "".join(cell(v, f"{chr(64 + c)}{r}") for c, v in enumerate(row, 1)
                          if v is not None)
                + "</row>"
                for r, row in enumerate(rows, start=1)
            )  # fmt: skip
            archive.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>{data}</sheetData>'
                f"<mergeCells>{merges}</mergeCells></worksheet>",
            )
    return path


def _linked(links):
    return f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
