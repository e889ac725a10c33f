"""Reads the body of DeleteObjects: which keys it names (S3 API reference, DeleteObjects)."""

from typing import Final, NoReturn
from xml.parsers import expat

from lakewarden.errors import BadRequest

MOST_KEYS: Final = 1000
"""S3's own limit."""
_DELETE, _OBJECT = ("Delete",), ("Delete", "Object")
_KEY: Final = (*_OBJECT, "Key")
_KNOWN: Final = {
    _DELETE,
    _OBJECT,
    _KEY,
    ("Delete", "Quiet"),
    *((*_OBJECT, name) for name in ("ETag", "LastModifiedTime", "Size")),
}


def deleted_keys(body: str) -> list[str]:
    """All keys, each as the store will read it.

    Raises BadRequest for what two parsers might read differently (document types, comments, sections, namespaces of
    elements), and for elements that this server does not know, such as versions.
    """
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.XmlDeclHandler = reader.declared
    parser.StartElementHandler = reader.started
    parser.EndElementHandler = reader.ended
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = lambda *_: _refuse("a document type is not allowed")
    parser.CommentHandler = lambda _: _refuse("comments are not allowed")
    parser.ProcessingInstructionHandler = lambda *_: _refuse("processing instructions are not allowed")
    parser.StartCdataSectionHandler = lambda: _refuse("CDATA sections are not allowed")
    try:
        parser.Parse(body.encode(), True)  # noqa: FBT003 expat takes no keywords
    except expat.ExpatError as error:
        _refuse(f"it is not valid XML: {error}")
    except UnicodeEncodeError:
        _refuse("it is not valid Unicode")
    if not reader.keys:
        _refuse("it names no key")
    return reader.keys


class _Reader:
    def __init__(self) -> None:
        self.keys: list[str] = []
        self._path: tuple[str, ...] = ()
        self._key: list[str] | None = None
        self._is_named = False

    def declared(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            _refuse("it must be in UTF-8")

    def started(self, name: str, attributes: dict[str, str]) -> None:
        self._path = (*self._path, name)
        if self._path not in _KNOWN:
            _refuse(f"the element {'/'.join(self._path)[:80]!r} is not supported")
        if attributes and (self._path != _DELETE or attributes.keys() != {"xmlns"}):
            _refuse(f"the element {name!r} must not have attributes")
        if self._path == _OBJECT:
            self._is_named = False
        elif self._path == _KEY:
            if self._is_named:
                _refuse("an object has two keys")
            if len(self.keys) == MOST_KEYS:
                _refuse(f"it names more than {MOST_KEYS} keys")
            self._key, self._is_named = [], True

    def ended(self, _name: str) -> None:
        if self._key is not None:
            self.keys.append("".join(self._key))
            self._key = None
        elif self._path == _OBJECT and not self._is_named:
            _refuse("an object has no key")
        self._path = self._path[:-1]

    def text(self, text: str) -> None:
        if self._key is not None:
            self._key.append(text)


def _refuse(problem: str) -> NoReturn:
    raise BadRequest(f"Invalid body of a deletion of several objects: {problem}")
