"""Every message of an error that we raise: what is wrong and what to do, in sentences a user of the package can follow.

`docs/errors.md` has those that users met first, with cause and cure; each of its phrases is in the code.
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tf_ipu_shim"
HOLE = "{}"
# Files of the sources, which pip does not install, and commands that only real IPUs have.
OUT_OF_REACH = re.compile(r"(?<!in )\b(docs/\w+\.md|CONTRIBUTING\.md|README\.md|gc-info|gc-monitor)\b(?! in the)")
LONGEST = 600  # characters, without what is filled in


def text_of(node):
    """The text of a literal, `{}` for what is filled in; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def messages():
    """Every literal message of a `raise` statement whose exception is made on the spot: (place, message)."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func).rpartition(".")[2]
                texts = [text for text in map(text_of, node.exc.args) if text]
                if texts and re.match(r"[A-Z]\w*(Error|Exception)$", name):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", texts[-1]


MESSAGES = list(messages())


def test_messages_are_found():
    assert len(MESSAGES) > 500


def test_messages_are_sentences():
    """Each ends as a sentence does; what begins with a small letter is a reason that another message gives."""
    wrong = [
        f"{place}: {text}"
        for place, text in MESSAGES
        if not re.match(r"[a-z]", text) and not re.search(r"[.})`:?'\"]\s*$", text)
    ]
    assert wrong == []


def test_messages_point_to_what_is_there():
    assert [f"{place}: {text}" for place, text in MESSAGES if OUT_OF_REACH.search(text)] == []


def texts():
    """Every text that is no docstring: (place, text)."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        unseen = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unseen:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_text_points_to_files_that_pip_does_not_install():
    """Messages, warnings, help and descriptions of options."""
    assert [f"{place}: {text}" for place, text in texts() if re.search(r"\w+\.md\b(?! in the| there)", text)] == []


def test_messages_are_short():
    assert [place for place, text in MESSAGES if len(text) > LONGEST] == []


def test_the_page_of_errors_is_about_errors_that_there_are():
    page = (ROOT / "docs" / "errors.md").read_text()
    phrases = re.findall(r"^### `(.+)`$", page, re.M)
    assert len(phrases) >= 12
    sources = "".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text()) for path in PACKAGE.rglob("*.py"))
    sources += "".join(re.sub(r'",?\s*\n?\s*"', "", path.read_text()) for path in PACKAGE.rglob("*.cc"))
    assert [phrase for phrase in phrases if not all(part in sources for part in phrase.split(" ... "))] == []
    for part in page.split("### ")[1:]:
        assert "Cause:" in part and "Cure:" in part, part.splitlines()[0]
