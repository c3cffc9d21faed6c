"""Encode records as JSON that every reader accepts, whatever a program's texts hold."""

import re
from typing import TypeVar

import msgspec

_OBEYED = re.compile(  # in UTF-8: DEL and C1, marks of direction, ends of line to some readers alone, no characters
    b"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbf[\xbe\xbf]"
)
_encoder = msgspec.json.Encoder()
_Record = TypeVar("_Record", bound=msgspec.Struct)


def encode(value: object) -> bytes:
    """One line of UTF-8. A float that is not finite is null; what UTF-8 cannot say of a program's text is spelled, and
    what a terminal would obey is escaped, as JSON has it.
    """
    try:
        encoded = _encoder.encode(value)
    except UnicodeEncodeError:
        encoded = _encoder.encode(_encodable(msgspec.to_builtins(value, enc_hook=_raw)))
    return _OBEYED.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), encoded)


def formatted(value: object, *, indent: int = 2) -> bytes:
    """The same for people to read too, and several lines."""
    return msgspec.json.format(encode(value), indent=indent)


def like(kind: type[_Record], source: object, /, **own: object) -> _Record:
    """A record with these fields of its own; the others are the attributes of the same names of `source`."""
    names = (name for name in kind.__struct_fields__ if name not in own and hasattr(source, name))
    return kind(**{name: getattr(source, name) for name in names}, **own)


def picked(source: object, names: str) -> dict[str, object]:
    """The attributes of these names, as a dict."""
    return {name: getattr(source, name) for name in names.split()}


def every_key(record: msgspec.Struct) -> dict[str, object]:
    """The record as a dict of its encoded keys, also those that have their defaults, and so of the records in it."""
    return {field.encode_name: _every_key(getattr(record, field.name)) for field in msgspec.structs.fields(record)}


def _every_key(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return every_key(value)
    return [_every_key(each) for each in value] if isinstance(value, tuple | list) else value


def _raw(value: object) -> object:
    """What is JSON already."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise NotImplementedError(f"{type(value).__name__} is no record")


def _encodable(value: object) -> object:
    """The value with each lone surrogate in its texts spelled: \\udcff."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(held) for held in value]
    return value
