"""Lists and removes what a bucket keeps beside its objects: earlier versions, delete markers, unfinished uploads."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from lakewarden.storage.object_listing import Entry, NotRemoved
from lakewarden.storage.s3.listing import S3Listing, before, common, translating, version_of, within

_UPLOAD = "upload "
_NULL = "null"
"""The version of what was written while the bucket kept no versions; unlike others it can be replaced."""


class S3VersionsListing(S3Listing):
    """As S3Listing, but what is removed is removed in all its versions."""

    def everything(self, prefix: str) -> Iterator[Entry]:
        return chain(self._versions(prefix), self._uploads(prefix))

    def between(self, first: str, last: str) -> Iterator[Entry]:
        marker = before(first)
        prefix = common(marker, last)  # MinIO refuses a marker outside of the prefix
        versions, uploads = self._versions(prefix, after=marker), self._uploads(prefix, after=marker)
        return chain(within(versions, first, last), within(uploads, first, last))

    def remove(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        uploads = [each for each in entries if each.version.startswith(_UPLOAD)]
        for each in uploads:
            with translating():
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=each.key, UploadId=each.version.removeprefix(_UPLOAD)
                )
        rest = [each for each in entries if not each.version.startswith(_UPLOAD)]
        return super().remove(rest) if rest else []

    def _named(self, entry: Entry) -> dict[str, str]:
        return {"Key": entry.key, "VersionId": entry.version.partition(" ")[0]}

    def _versions(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        asked: dict[str, Any] = {"KeyMarker": after} if after else {}
        for page in self._pages("list_object_versions", Prefix=prefix, **asked):
            found = (*page.get("Versions", []), *page.get("DeleteMarkers", []))
            for each in sorted(found, key=lambda each: each["Key"].encode()):
                version, changed_at = each["VersionId"], each["LastModified"]
                if version == _NULL:
                    version = f"{_NULL} {version_of(each.get('ETag', ''), changed_at)}"
                yield Entry(each["Key"], each.get("Size", 0), version, changed_at)

    def _uploads(self, prefix: str, *, after: str = "") -> Iterator[Entry]:
        asked: dict[str, Any] = {"KeyMarker": after} if after else {}
        for page in self._pages("list_multipart_uploads", Prefix=prefix, **asked):
            for each in page.get("Uploads", []):
                yield Entry(each["Key"], 0, f"{_UPLOAD}{each['UploadId']}", each["Initiated"])
