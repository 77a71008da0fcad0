"""Text to unit vectors: the protocol, the bundled model, servers, and a cache over any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anima.lazy import lazy

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
    "BundledEmbedder": "bundled", "CacheInfo": "cache", "CachedEmbedder": "cache", "Embedder": "base",
    "OllamaEmbedder": "remote", "OpenAIEmbedder": "remote", "TableEmbedder": "base", "get_embedder": "base",
    "has_vector": "base",
}  # fmt: skip

__getattr__, __dir__ = lazy(__name__, _HOMES)
