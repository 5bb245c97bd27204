"""Compares the models with published figures: `python -m benchmarks.calibration --write`.

Without `--run` or `--write` it prints the figures of the last run, which are in validation/model/modelled.csv.
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
    parser.add_argument("--write", action="store_true", help="run the models and write validation/model/modelled.csv")
    arguments = parser.parse_args()
    wanted = arguments.only.lower()
    chosen = [row for row in rows.published() if wanted in f"{row.case} {row.program} {row.regime}".lower()]
    figures = rows.modelled()
    if arguments.run or arguments.write:
        for row in chosen:
            try:
                figures[row.case, row.figure] = models.modelled(row)
            except models.ModelError as error:
                print(error, file=sys.stderr)
    if arguments.write:
        rows.write_modelled(figures)
    print(report.to_text(chosen, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
