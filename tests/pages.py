"""Make pages of all kinds of data and look at each in a browser: ``make pages``.

``python tests/pages.py FOLDER`` does. With a .png file it draws the picture of the docs.

The eight bundled data sets, files with odd names, 500 columns, a million rows, one column. Each
page is opened without a network at three widths, light and dark, and printed; pictures stand
beside the pages. Exits with 1 if one is wrong.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas
from PIL import Image

import browser
from muhat import TwoSampleTest, compare, load_dataset
from muhat.datasets import NAMES

ODD_NAMES = ("<script>alert(1)<!--", "a'b\"c & d", "😀 data", "שלום", "n" * 200)
WIDTHS = (360, 768, 1280)
MOST_BYTES = 3_000_000


def pages(folder, rows=1_000_000):
    """Yield pages of all kinds of data, written to a folder."""
    rng = np.random.default_rng(0)

    def run(name, *arguments):
        page = folder / f"{name}.html"
        command = [
            sys.executable,
            "-m",
            "muhat",
            *map(str, arguments),
            "--report",
            str(page),
            "--json",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        return page

    for name in sorted({*NAMES} - {"svmguide2"}):
        data = load_dataset(name)
        page = folder / f"data set {name}.html"
        compare(data.data, standardize=True).to_html(
            page, data=data, settings={"standardize": True}
        )
        yield page
    for place, name in enumerate(ODD_NAMES):
        columns = ",".join('"' + each.replace('"', '""') + '"' for each in (*ODD_NAMES, "label"))
        lines = [
            columns,
            *(
                ",".join(map(str, row)) + ",yes"
                for row in rng.normal(size=(60, len(ODD_NAMES))).tolist()
            ),
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
        yield run(f"odd name {place}", "compare", f"{name}.csv", "--only-numeric")
    first, second = (f"{name}.csv" for name in ODD_NAMES[:2])
    yield run("odd names test", "test", first, second, "--only-numeric")
    for name, shape in {"wide": (200, 500), "one column": (200, 1), "long": (rows, 3)}.items():
        np.save(folder / f"{name}.npy", rng.normal(size=shape))
    yield run("wide", "compare", "wide.npy")
    yield run("wide test", "test", "wide.npy", "wide.npy")
    yield run("one column", "compare", "one column.npy")
    yield run("one column test", "test", "one column.npy", "one column.npy")
    yield run("long", "compare", "long.npy", "--gram", "nystrom", "--features", 100)


def look_at(tab, page):
    """Open a page at every width, take pictures of it, print it, and return what is wrong."""
    wrong = [f"{page.stat().st_size:,} bytes"] * (page.stat().st_size > MOST_BYTES)
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            tab.media(scheme)
            tab.open(page, width)
            wrong += [*tab.misfits(), *map(str, tab.complaints()), *tab.requests()]
            height = tab.js("document.documentElement.scrollHeight")
            tab.resize(width, min(height, 12_000))
            tab.screenshot(page.with_name(f"{page.stem} {width} {scheme}.png"))
    tab.media()
    tab.pdf(page.with_suffix(".pdf"))
    return wrong


def draw(tab, path):
    """Write a picture of a page on a screen, and of another, dark, on a phone."""
    wine, ionosphere = load_dataset("wine"), load_dataset("ionosphere")
    scaled = pandas.DataFrame(wine.data / wine.data.std(axis=0), columns=wine.feature_names)
    frames = {"Barolo": scaled[wine.target == 1], "Grignolino": scaled[wine.target == 2]}
    shots = []
    with TemporaryDirectory() as folder:
        place = Path(folder)
        TwoSampleTest(random_state=0).test(*frames.values()).to_html(
            place / "test.html", data=frames
        )
        compare(ionosphere.data, standardize=True).to_html(place / "compare.html", data=ionosphere)
        for name, width, scheme in (("test", 1000, "light"), ("compare", 390, "dark")):
            tab.media(scheme)
            tab.open(place / f"{name}.html", width, 1240)
            tab.screenshot(place / f"{name}.png", whole=False)
            shots.append(Image.open(place / f"{name}.png").convert("RGB"))
    whole = Image.new("RGB", (sum(each.width for each in shots) + 30, shots[0].height), "white")
    whole.paste(shots[0], (0, 0))
    whole.paste(shots[1], (shots[0].width + 30, 0))
    whole.quantize(128).save(path, optimize=True)


def main(folder):
    """Make all pages in a folder, look at each, and return the exit status."""
    status, tab = 0, browser.Browser(browser.found())
    try:
        if folder.suffix == ".png":
            draw(tab, folder)
            return status
        folder.mkdir(parents=True, exist_ok=True)
        for page in pages(folder):
            wrong = look_at(tab, page)
            print(
                f"{page.name}: {page.stat().st_size:,} bytes, "
                f"{'; '.join(wrong) or 'nothing is wrong'}",
                flush=True,
            )
            status |= bool(wrong)
    finally:
        tab.close()
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
