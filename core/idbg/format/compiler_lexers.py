"""Lexers of the languages that pygments does not know: MLIR, and SASS as nvdisasm prints it."""

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class MlirLexer(RegexLexer):  # type: ignore[misc]
    """MLIR in its textual form, of whatever dialect."""

    name = "MLIR"
    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"//[^\n]*", Comment),
            (r'"(?:[^"\\\n]|\\.)*"', String),
            (r"\bloc\b", Comment),
            (r"%[\w$.#-]+(?::\d+)?", Name.Variable),
            (r"[@^][\w$.-]+", Name.Function),
            (r'@"[^"\n]*"', Name.Function),
            (r"#[\w$.-]+", Name.Decorator),
            (r"![\w$.-]+", Keyword.Type),
            (r"\b(?:i|si|ui|f|bf|tf)\d+\w*\b|\b(?:index|none)\b", Keyword.Type),
            (r"(?:tensor|memref|vector|tuple|complex)(?=<)", Keyword.Type),
            (r"<?(?:\d+|\?)(?:x(?:\d+|\?))*x(?=[a-z!])", Number),
            (r"-?\b0x[0-9a-fA-F]+\b|-?\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b", Number),
            (r"\b[a-z_][\w]*(?:\.[\w$]+)+", Keyword),
            (r"\b(?:module|func|return|attributes|dense|true|false|unit)\b", Keyword),
            (r"\w+", Text),
            (r"->|[=:+*-]", Operator),
            (r"[^\s\w]", Punctuation),
        ]
    }


class SassLexer(RegexLexer):  # type: ignore[misc]
    """The machine code of NVIDIA's GPUs."""

    name = "SASS"
    tokens: ClassVar = {
        "root": [
            (r"//[^\n]*", Comment),
            (r"/\*.*?\*/", Comment),
            (r"^(\s*)([.\w$]+:)", bygroups(Text, Name.Function)),
            (r"^\s*\.[\w.]+", Comment.Preproc),
            (r"@!?U?P(?:\d|T)", Name.Decorator),
            (r"\b(?:U?R(?:\d+|Z)|U?P(?:\d|T)|SR_[\w.]+|B\d+)\b", Name.Variable),
            (r"\bc\[0x[0-9a-f]+\]", Name.Variable),
            (r"\b[A-Z][A-Z0-9]+(?:\.[\w.]+)?", Keyword),
            (r"-?\b0x[0-9a-f]+\b|-?\b\d+(?:\.\d+)?\b", Number),
            (r"\s+|\w+", Text),
            (r".", Punctuation),
        ]
    }


LEXERS: dict[str, type[RegexLexer]] = {"mlir": MlirLexer, "sass": SassLexer}
