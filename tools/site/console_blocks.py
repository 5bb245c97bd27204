"""Marks prompts and outputs in blocks of commands, which `site.css` leaves out of what the button of a block copies."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"(?<=<code>)\$ .*?(?=</code></pre>)", re.DOTALL)


def marked(html: str) -> str:
    """Returns a page with the classes that Pygments has for them: `gp` for prompts, `go` for output."""
    return _BLOCK.sub(_marked_block, html)


def _marked_block(block: re.Match[str]) -> str:
    lines: list[str] = []
    is_command = False
    for line in block[0].splitlines(keepends=True):
        continues = is_command and lines[-1].endswith("\\\n")
        is_command = continues or line.startswith("$ ")
        if not is_command:
            line = f'<span class="go">{line}</span>'
        elif not continues:
            line = f'<span class="gp">$ </span>{line[2:]}'
        lines.append(line)
    return "".join(lines)
