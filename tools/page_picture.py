"""Draws `docs/how_to/measure/profile_page.png`: the page of a profile, as Chromium shows it.

    python tutorials/reading_a_profile.py --keep DIR
    python tools/page_picture.py DIR/tf_report__*train*/profile.pop docs/how_to/measure/profile_page.png

Needs Chromium (`CHROMIUM` names it if it is not `chromium`). No network is used.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import tempfile

from tf_ipu_shim.profiling import page, reader


def draw(profile: str, picture: str, width: int, height: int) -> None:
    """Writes the image.

    Args:
        profile: a `profile.pop` or its folder.
        picture: the PNG file.
        width: the width of the window, in pixels.
        height: its height.
    """
    with tempfile.TemporaryDirectory() as folder:
        html = pathlib.Path(folder) / "page.html"
        html.write_text(page.render_page(reader.read_profile(pathlib.Path(profile))))
        subprocess.run(
            [
                os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--disable-gpu",
                "--hide-scrollbars", f"--window-size={width},{height}", f"--screenshot={picture}", html.as_uri(),
            ],
            check=True,
            timeout=60,
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("picture")
    parser.add_argument("--size", default="1024,880", help="of the window, in pixels")
    arguments = parser.parse_args()
    draw(arguments.profile, arguments.picture, *map(int, arguments.size.split(",")))
