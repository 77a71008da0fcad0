"""Text to unit vectors: the protocol, the bundled model, servers, and a cache over any of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anima.embedding.base import Embedder, TableEmbedder, get_embedder, has_vector
    from anima.embedding.bundled import BundledEmbedder
    from anima.embedding.cache import CachedEmbedder, CacheInfo
    from anima.embedding.remote import OllamaEmbedder, OpenAIEmbedder

__all__ = [
    "BundledEmbedder", "CacheInfo", "CachedEmbedder", "Embedder", "OllamaEmbedder", "OpenAIEmbedder", "TableEmbedder",
    "get_embedder", "has_vector",
]  # fmt: skip

# Loaded on first use: httpx and sqlite3 cost more time than all the rest.
_HOMES: Final = {
    "BundledEmbedder": "bundled", "CacheInfo": "cache", "CachedEmbedder": "cache", "OllamaEmbedder": "remote",
    "OpenAIEmbedder": "remote",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'base')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
