"""Tells which of its four parts an error message has: where, received, expected and fix.

`<what failed>: <argument, IPU, op or line> is <received>; expected <expected>. <Imperative fix>.`
"""

from __future__ import annotations

import re

from error_messages import Message

PARTS = ("where", "received", "expected", "fix")

# Parts that Python or another message completes: of `hasattr`, of abstract classes, of quoted reasons.
_INCOMPLETE = re.compile(
    r"^(module )?(\{\}|'[\w.]+')( object)? has no (attribute|message)|^Abstract method"
    r"|^(\{\}|[A-Z_]+)(: \{\})?$|^[a-z]+ [a-z]+ [a-z]|^it \{\}$"
)
# Errors of the plugin and of command lines, which a script's author does not cause.
_OTHERS = ("PluginError", "ArgumentTypeError", "AbstractMethodError", "ConversionError")

_WHERE = re.compile(
    r"\{\}|`[^`]+`|'[^']+'|\"[^\"]+\""  # a value, code, a quotation
    r"|\b\w+_\w+|\b\w+\.\w+|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*|--\w+|\w+\(|\w+="  # a name in code
)
_RECEIVED = re.compile(
    r"\{\}|\b(is|are|was|were|has|have|had|does|do|got|found|received|given|both|None|without|missing|after)\b"
)
_EXPECTED = re.compile(
    r"\b(expected|expects?|must|should|needs?|requires?|required|has to|have to|at least|at most|one of|only|allowed"
    r"|can|cannot|needed|support(?:ed|s)?|takes (?!no\b)|emulated|available|instead of|exactly|multiples? of"
    r"|may (?:not|only)|from .+ to|are:|neither|(?:is|are|was|were|has|have|does|do|has been) not)\b|: \{\}",
    re.I,
)
_VERBS = """
    Add Adjust Allow Apply Ask Assign Attach Begin Broadcast Build Call Cast Change Check Choose Clip Close Combine
    Compare Compile Compute Configure Construct Continue Convert Correct Create Cut Declare Decorate Define Delete
    Dequeue Derive Disable Do Download Draw Drop Enable End Enter Export Feed Fix Flatten Fork Free Get Give Ignore
    Implement Import Increase Initialise Initialize Install Iterate Join Keep Leave Let Limit List Load Lower Make
    Map Mark Match Measure Move Name Nest Number Open Override Pad Pass Place Please Prefer Print Provide Put Quote
    Raise Read Rebuild Reduce Register Remove Rename Repeat Replace Report Request Reset Reshape Restore Return Run
    Save Say See Select Send Separate Serialise Serve Set Share Shorten Show Specify Split Start Stop Switch Take
    Test Trace Train Try Turn Undo Unset Update Upgrade Use Wait Wrap Write
""".split()
# An imperative at the beginning of a sentence or a clause.
_FIX = re.compile(
    r"(?:^|\n|[.:;!?,)}] |\bor |\band |\bthen )"
    rf"(?:{'|'.join([*_VERBS, *map(str.lower, _VERBS)])})\b(?! (?:is|are|of|has)\b)"
)


def is_for_authors(message: Message) -> bool:
    """Returns whether the author of a script can cause the error, so that the message needs all four parts."""
    return message.error not in _OTHERS and not _INCOMPLETE.search(message.text)


def parts(text: str) -> set[str]:
    """Returns the parts that a message has.

    Example:
        >>> sorted(parts("The axis is {}; expected 0 to {}. Pass another axis."))
        ['expected', 'fix', 'received', 'where']
        >>> sorted(parts("ids must be integers, not {}."))
        ['expected', 'received', 'where']
    """
    patterns = dict(zip(PARTS, (_WHERE, _RECEIVED, _EXPECTED, _FIX)))
    return {part for part, pattern in patterns.items() if pattern.search(text)}
