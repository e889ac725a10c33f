"""Posts events to a webhook, signed, one request each."""

from collections.abc import Sequence
from typing import Final

from lakewarden import signed_posts
from lakewarden.config import WebhookSinkConfig
from lakewarden.events.envelope import CONTENT_TYPE
from lakewarden.events.sinks.interface import EnsureMine, Message, Refused, SinkFailed
from lakewarden.signed_posts import PostFailed, Receiver, SignedPosts

_NEVER: Final = {400, 406, 410, 413, 415, 422}
"""Statuses by which a receiver says that this event will never be accepted."""


class WebhookSink:
    """The headers follow Standard Webhooks; see `SignedPosts`."""

    def __init__(self, settings: WebhookSinkConfig, ensure_mine: EnsureMine) -> None:
        self._ensure_mine = ensure_mine
        self._posts = SignedPosts(
            Receiver(
                what="webhook",
                url=settings.url,
                secret=settings.secret.get_secret_value(),
                timeout_s=settings.timeout_s,
                ca_file=settings.ca_file,
                allow_private_addresses=settings.allow_private_addresses,
                setting="the sink's ...__WEBHOOK__ALLOW_PRIVATE_ADDRESSES",
            )
        )

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        refused: list[Refused] = []
        for done, each in enumerate(messages):
            self._ensure_mine()
            try:
                reason = self._posted(each)
            except (SinkFailed, PostFailed) as error:
                raise SinkFailed(str(error), done=done, refused=refused) from error
            if reason is not None:
                refused.append(Refused(each, reason))
        return refused

    def close(self) -> None:
        self._posts.close()

    def _posted(self, message: Message) -> str | None:
        """None: accepted; otherwise why it never will be."""
        status, _ = self._posts.post(str(message.id), message.body, content_type=CONTENT_TYPE)
        if 200 <= status < 300:  # noqa: PLR2004 HTTP
            return None
        reason = f"The webhook answered {status}"
        if 300 <= status < 400:  # noqa: PLR2004 HTTP
            raise SinkFailed(f"{reason}: redirects are not followed, set the final address")
        if status in _NEVER:
            return reason
        raise SinkFailed(reason)


def signature(secret: str, message: Message, at: str) -> str:
    return signed_posts.signature(secret, str(message.id), message.body, at)
