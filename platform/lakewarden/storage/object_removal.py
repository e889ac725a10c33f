"""Removes objects by pages, several at a time: what a purge of an object store does."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakewarden.storage.interface import StorageError
from lakewarden.storage.object_listing import Listing
from lakewarden.storage.removal import Found, Removed

PAGE: Final = 1000
"""The most that stores list or remove in one request."""


def in_pages(found: Sequence[Found], clear: Callable[[Sequence[Found]], Removed], *, at_once: int) -> Removed:
    """Few things are spread over as many requests as may run at a time."""
    longest = max(1, min(PAGE, -(-len(found) // at_once)))
    pages = [found[at : at + longest] for at in range(0, len(found), longest)]
    if at_once == 1 or len(pages) <= 1:
        return Removed.joined(clear(page) for page in pages)
    with ThreadPoolExecutor(at_once, thread_name_prefix="purge") as threads:
        return Removed.joined(threads.map(clear, pages))


def remove_page(listing: Listing, page: Sequence[Found], prefix: str, outcome: Removed) -> None:
    """Remove what is still as it was found. One list of the page's range tells that, instead of a request for each."""
    wanted = {(f"{prefix}{each.path}", each.version): each for each in page}
    keys = [key for key, _ in wanted]
    there = {}
    replaced = set()
    for entry in listing.between(min(keys, key=str.encode), max(keys, key=str.encode)):
        if (entry.key, entry.version) in wanted:
            there[entry.key, entry.version] = entry
        else:
            replaced.add(entry.key)
    outcome.missing += [each for at, each in wanted.items() if at not in there and at[0] not in replaced]
    refused = {each.key: each.code for each in listing.remove(list(there.values()))} if there else {}
    outcome.gone += [wanted[at] for at in there if at[0] not in refused]
    if refused:
        key, code = next(iter(refused.items()))
        raise StorageError(f"{len(refused)} files could not be deleted, the first is {key}: {code}")
