"""A pipeline whose stages are cut badly, its profile, and the same cut better.

    python tutorials/reading_a_profile.py                          # first cut
    python tutorials/reading_a_profile.py --stages 0,1,2,2,3,3     # second cut

tutorials/reading_a_profile.md reads what is printed, line by line.
"""

import argparse
import collections
import pathlib
import tempfile

import numpy as np
import pva
import tensorflow as tf
from tensorflow.python import ipu

parser = argparse.ArgumentParser()
parser.add_argument("--stages", default="0,0,1,2,3,3", help="the stage of each of the six layers")
parser.add_argument("--keep", help="a directory for the profile; one that is deleted when left out")
arguments = parser.parse_args()

FEATURES, BATCH, COUNT = 512, 16, 16
WIDTHS = [1024, 1024, 512, 512, 1024, 16]
folder = pathlib.Path(arguments.keep or tempfile.mkdtemp())

# 1. Profiles are asked for where they are on the real system: by an option of the engine.
config = ipu.config.IPUConfig()
config.auto_select_ipus = 4
config.compilation_poplar_options = {"autoReport.all": "true", "autoReport.directory": str(folder)}
config.configure_ipu_system()

random = np.random.RandomState(0)
x = random.randn(4 * COUNT * BATCH, FEATURES).astype(np.float32)
y = x[:, : WIDTHS[-1]].copy()

with ipu.ipu_strategy.IPUStrategy().scope():
    layers = [
        tf.keras.layers.Dense(width, "relu", name=f"dense_{index}", **({} if index else {"input_shape": [FEATURES]}))
        for index, width in enumerate(WIDTHS)
    ]
    model = tf.keras.Sequential(layers)
    model.set_pipeline_stage_assignment([int(stage) for stage in arguments.stages.split(",")])
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=COUNT)
    model.compile("sgd", "mse", steps_per_execution=4 * COUNT)
    model.fit(x, y, batch_size=BATCH, verbose=0)

# 2. Each program has a folder. This one is called after what it does.
[file] = folder.glob("tf_report__*train*/profile.pop")
report = pva.openReport(str(file))

# 3. Time: what each IPU does in a run, which is 4 updates of the weights. What is missing to 100 % it waits.
total = report.execution.totalCycles.total
busy: collections.Counter = collections.Counter()
cycles: collections.Counter = collections.Counter()
for step in report.execution.steps:
    for number, on_ipu in enumerate(step.ipus):
        busy[number] += on_ipu.cycles
    cycles[step.program.name] += max(on_ipu.cycles for on_ipu in step.ipus)
print(f"A run takes {total:,} cycles.")
for number, stages in sorted(enumerate(report.facts["stages"]), key=lambda ipu: ipu[1]):
    print(f"Stage {stages[0]}, on IPU {number}, is busy for {busy[number] / total:.0%} of them.")
print("Most of them are for")
for name, count in cycles.most_common(3):
    print(f"  {count:>9,}  {name}")

# 4. Memory: the fullest IPU at its largest step, by what it is for.
needs = [sum(categories.values()) for categories in report.categories]
fullest = needs.index(max(needs))
print(f"IPU {fullest} needs most memory, {needs[fullest]:,} bytes, of them")
for category, size in collections.Counter(report.categories[fullest]).most_common(3):
    print(f"  {size:>9,}  {category}")
