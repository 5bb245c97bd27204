"""Compares the models with published figures: `python -m benchmarks.calibration --write`.

Without `--run` or `--write` it prints the figures of the last run, which are in validation/model/modelled.csv. Each
figure is written as soon as it is known, with a stamp of the model's sources: the same command resumes a run.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.calibration import models, report, rows


def main() -> int:
    """Runs the models on the chosen rows, and prints ratio and bar of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="only rows whose case, program or regime has it")
    parser.add_argument("--run", action="store_true", help="run the models (about 15 seconds for each program)")
    parser.add_argument("--write", action="store_true", help="run rows of an older model and write the data file")
    arguments = parser.parse_args()
    wanted = arguments.only.lower()
    chosen = [row for row in rows.published() if wanted in f"{row.case} {row.program} {row.regime}".lower()]
    figures = rows.modelled()
    for row in chosen if arguments.run or arguments.write else ():
        if arguments.write and rows.is_of_this_model(row):
            continue
        try:
            figures[row.case, row.figure] = found = models.modelled(row)
        except models.ModelError as error:
            print(error, file=sys.stderr)
            continue
        if arguments.write:
            rows.write_modelled(row, found)
    print(report.to_text(chosen, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
