"""How the frozen records of this package are declared."""

from __future__ import annotations

import sys
from typing import Any

# `kw_only` came with Python 3.10. On 3.9 the records are as frozen, only their fields may also be given by position.
RECORD: dict[str, Any] = {"frozen": True, "kw_only": True} if sys.version_info >= (3, 10) else {"frozen": True}
