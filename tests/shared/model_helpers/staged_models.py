"""Keras models in stages."""

from keras_models import compiled, keras


def nested(stages=None):
    """A functional model with a sequential and a functional one inside."""
    keras.utils.set_random_seed(1)
    front = keras.Sequential([keras.layers.Dense(8, activation="relu", name="one"), keras.layers.Dense(8, name="two")])
    inside = keras.Input((8,))
    back = keras.Model(inside, keras.layers.Dense(3, name="four")(keras.layers.Dense(8, name="three")(inside)))
    inputs = keras.Input((6,))
    return keras.Model(inputs, back(front(inputs)))


def assign(model, stages):
    """Gives the layers stages, in order."""
    left = iter(stages)

    def give(assignments):
        for one in assignments:
            if one.is_nested_model:
                give(one.pipeline_stage_assignments)
            else:
                one.pipeline_stage = next(left)

    assignments = model.get_pipeline_stage_assignment()
    give(assignments)
    model.set_pipeline_stage_assignment(assignments)


def pipelined(model):
    model = compiled(model, steps_per_execution=8)
    model.set_pipelining_options(4, gradient_accumulation_reduction_method="mean")
    return model


def flat(assignments):
    for one in assignments:
        yield from flat(one.pipeline_stage_assignments) if one.is_nested_model else [one]


class Own(keras.Model):
    """A subclassed model with a configuration and a way from it of its own."""

    def __init__(self, width):
        super().__init__()
        self.first, self.last, self.width = keras.layers.Dense(width, name="first"), keras.layers.Dense(3), width

    def call(self, x):
        return self.last(self.first(x))

    def get_config(self):
        return {**super().get_config(), "width": self.width}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)
