"""Messages, help texts, docstrings, comments, documents and OpenAPI texts are in plain international English."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ROOMS = (
    "platform",
    "tenants",
    "catalog",
    "ingest",
    "management",
    "permissions",
    "console",
    "pipeline",
    "demo",
    "standalone",
)

UNCLEAR = {
    r"(?<![Tt]here )\bis no (?!longer\b|more\b)[a-z]": 'write "is not a valid …" or "does not exist"',
    r"\bnone of (this|the|its)\b[^.]*'s\b": 'write "does not belong to …" or "was not issued by …"',
    r"\b(he|him|his|himself)\b": 'write "they", "them", "their"',
    r"\b(is|are|was) (ours|theirs)\b|\bnot ours\b|\ba? ?\w+ of ours\b": "say whose it is",
    r"\bin so many words\b|\bto be had\b|\bsays it\b": "say what is meant",
    r"\b(is|are|be|been) told\b|\btells? (how|the|a|which|what)\b": 'write "returns", "is returned" or "payload"',
    r"\bwho (writes|asks|says|has|lies) (there|it)\b": "say what may be the cause",
    r"\bnobody's\b|\bnobody is\b|\bis nobody\b|\bnone of this\b": "say who does not, or what it does not belong to",
    r"\bfor good\b": 'write "permanently"',
    r"\b(hold|holds|held) (up|nobody)\b|\bkeeps nobody\b": 'write "blocks" or "delays"',
    r"\bheld against\b": 'write "compared with" or "checked against"',
    r"\bfalls? silent\b|\bdearer\b|\bcrosswise\b|\bto and fro\b": "write it in usual words",
    r"\bknows? how to say\b|\bordinary way\b": 'write "returns the error", "the ordinary path"',
}
UNCLEAR_TO_API_USERS = UNCLEAR | {r"\bRaises [A-Z]": "name the HTTP status", r"\bWhat was set\b": "say what is read"}


def faults(sentence: str, unclear: dict[str, str]) -> list[str]:
    return [f"{sentence!r}: {remedy}" for phrase, remedy in unclear.items() if re.search(phrase, sentence)]


def sentences(source: str) -> Iterator[str]:
    """The texts of a module that are not docstrings: messages, help texts, descriptions."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def remarks(source: str) -> Iterator[str]:
    """The docstrings and comments of a module; a docstring with its lines joined."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield " ".join(node.value.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def descriptions(document: object) -> Iterator[str]:
    """All summaries and descriptions of an OpenAPI document."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name in {"summary", "description"} and isinstance(value, str):
                yield value
            else:
                yield from descriptions(value)
    elif isinstance(document, list):
        for value in document:
            yield from descriptions(value)


def paragraphs(document: str) -> Iterator[str]:
    """The paragraphs and rows of tables of a Markdown document, without code."""
    without_code = re.sub(r"```.*?```", "", document, flags=re.DOTALL)
    yield from (" ".join(each.split()) for each in re.split(r"\n\n|\n(?=\|)", without_code))


def found_in(room: str, read: Callable[[str], Iterator[str]]) -> list[str]:
    modules = [path for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts]
    modules = [path for path in modules if path != Path(__file__)]
    assert modules
    return [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in modules
        for sentence in read(path.read_text(encoding="utf-8"))
        for fault in faults(sentence, UNCLEAR)
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_messages_of_the_source(room: str) -> None:
    found = found_in(room, sentences)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("room", [*ROOMS, "scripts", "benchmarks"])
def test_docstrings_and_comments_of_the_source(room: str) -> None:
    found = found_in(room, remarks)
    assert not found, "\n".join(found)


def test_documents() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"]
    documents = [*pages, *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))]
    assert len(documents) > 30
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in documents
        for paragraph in paragraphs(path.read_text(encoding="utf-8"))
        for fault in faults(paragraph, UNCLEAR)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["catalog-api.yaml", "management-api.yaml"])
def test_operations_have_summaries_of_their_own(name: str) -> None:
    document = yaml.safe_load((ROOT / "docs" / "reference" / name).read_text(encoding="utf-8"))
    operations = [(path, each) for path, item in document["paths"].items() for each in item.values()]
    summaries = Counter(each["summary"] for _, each in operations if isinstance(each, dict) and "summary" in each)
    assert summaries.total() > 20
    assert not [summary for summary, number in summaries.items() if number > 1]


@pytest.mark.parametrize("name", ["catalog-api.yaml", "management-api.yaml"])
def test_descriptions_of_the_apis(name: str) -> None:
    document = yaml.safe_load((ROOT / "docs" / "reference" / name).read_text(encoding="utf-8"))
    texts = set(descriptions(document))
    assert len(texts) > 100
    assert not [fault for text in texts for fault in faults(text, UNCLEAR_TO_API_USERS)]


@pytest.mark.parametrize(
    "sentence",
    [
        "'x' is no user id",
        "Invalid pageToken: it is none of this server's",
        "The user was deleted: nothing can be given to him",
        "Port 80 is not ours to use",
        "Nobody is told an older state",
        "The place is nobody's from now on",
        "After 3 rounds something still lies at file:///a: who writes there?",
        "How many of the latest attempts are told",
        "The caller's own row. Raises Forbidden for a deleted user.",
        "A table was dropped for good",
        "Every answer is held against the document",
        "A storage that hangs holds up its own tables alone",
    ],
)
def test_unclear_sentences_are_found(sentence: str) -> None:
    assert faults(sentence, UNCLEAR_TO_API_USERS)


@pytest.mark.parametrize("sentence", ["The spec is no longer used", "Another process may be writing there"])
def test_clear_sentences_pass(sentence: str) -> None:
    assert not faults(sentence, UNCLEAR_TO_API_USERS)
