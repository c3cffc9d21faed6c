"""Fill HTML templates in which every value stays text.

Every expression in a template is cleaned (see `format.shown`) and escaped; what is `Markup` was made here. A template
that names what it was not given fails.
"""

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined
from markupsafe import Markup

from idbg.format import amounts, file_names
from idbg.format.glyphs import SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.format.shown import clean, middle, short
from idbg.format.verdicts import violation_words
from idbg.render.html import links
from idbg.render.html.code import highlighted

MOST_OF_ONE = 200_000  # characters that one expression of a template gives, whatever it is


def fill(template: str, **values: object) -> Markup:
    """A template of `templates/` filled in. Raises jinja2.UndefinedError where it names what it was not given."""
    return Markup(_environment().get_template(template).render(values))


def island(name: str, data: object) -> Markup:
    """Data for the page's script, as an element of JSON with that id which no text in it can end."""
    text = msgspec.json.encode(data).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


@cache
def static(name: str) -> str:
    """A file of `static/`: our own CSS and JavaScript."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """By which a content security policy knows this inline script or style."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _finalized(value: object) -> object:
    return value if isinstance(value, Markup | Undefined) else short(clean(str(value)), MOST_OF_ONE)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": amounts.counted,
        "violation_words": violation_words,
        "duration": amounts.duration,
        "elapsed": amounts.elapsed,
        "figure": amounts.figure,
        "middle": middle,
        "place": file_names.place,
        "short": short,
        "size": amounts.size,
    }
    environment.globals |= {
        "SEVERITY_SIGNS": SEVERITY_SIGNS,
        "VERDICT_SIGNS": VERDICT_SIGNS,
        "highlighted": highlighted,
        "kernel_key": links.kernel,
        "line_key": links.line,
        "node_key": links.node,
    }
    return environment
