"""Make a table of choices of the MTC work trips: how 5029 commuters of the San Francisco Bay Area went to work in 1990.

The data come with the Python package larch:

    pip download --no-deps larch
    unzip larch-*.whl larch/data_warehouse/MTCwork.csv.gz
    python examples/commuters_table.py larch/data_warehouse/MTCwork.csv.gz commuters.csv
    preselect study choices commuters.csv --k 1,2,3 --out results/commuters
"""

import argparse
import csv
import gzip

MODES = {"1": "alone by car", "2": "two by car", "3": "three by car", "4": "transit", "5": "bicycle", "6": "on foot"}
OF_MODE = {"arm.minutes": "tottime", "arm.cents": "totcost"}
OF_COMMUTER = {
    "context.income": "hhinc",  # of the household, in 1000 dollars
    "context.miles": "dist",
    "context.cars_per_worker": "vehbywrk",
    "context.female": "femdum",
    "context.density": "wkempden",  # of employment where the work is
}


def convert(row):
    """Return one row of the data, a mode that a commuter could use, as a row of a table of choices."""
    place = 1 if float(row["chose"]) > 0 else ""
    features = {name: row[column] for name, column in (OF_MODE | OF_COMMUTER).items()}
    return {"round": row["casenum"], "arm": MODES[row["altnum"]], "place": place, **features}


def main():
    """Read the file of the package, and write the table."""
    parser = argparse.ArgumentParser(description="Make a table of choices of the MTC work trips.")
    parser.add_argument("data", help="MTCwork.csv.gz")
    parser.add_argument("table", help="the CSV file to write")
    given = parser.parse_args()
    with gzip.open(given.data, "rt") as data, open(given.table, "w", newline="") as table:
        writer = csv.DictWriter(table, ["round", "arm", "place", *OF_MODE, *OF_COMMUTER])
        writer.writeheader()
        writer.writerows(map(convert, csv.DictReader(data)))


if __name__ == "__main__":
    main()
