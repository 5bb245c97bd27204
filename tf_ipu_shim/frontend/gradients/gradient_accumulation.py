"""`tensorflow.python.ipu.gradient_accumulation`: reduction methods for accumulated gradients."""

from __future__ import annotations

import enum
from typing import Any

from tf_ipu_shim.frontend.validation.enum_members import parse_member


class GradientAccumulationReductionMethod(enum.Enum):
    """The reduction of accumulated gradients.

    Attributes:
        SUM: they are added.
        MEAN: each is divided by their number, then added.
        RUNNING_MEAN: the mean so far is kept, which overflows later than the other two.
    """

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2

    @classmethod
    def parse(cls, reduction_method: Any) -> GradientAccumulationReductionMethod:
        """Returns the method that a script names.

        Args:
            reduction_method: a member, or its name in any case.

        Raises:
            ValueError: it is neither.

        Source: `tensorflow.python.ipu.gradient_accumulation`.

        Example:
            >>> GradientAccumulationReductionMethod.parse("mean").name
            'MEAN'
        """
        method = parse_member(cls, reduction_method)
        if method is None:
            raise ValueError(
                f"Cannot parse {reduction_method} as one of GradientAccumulationReductionMethod. reduction_method must "
                f"be set to one of GradientAccumulationReductionMethod.{', .'.join(cls.__members__)}. Pass one of "
                "these."
            )
        return method
