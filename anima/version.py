"""The version of the package, for receipts."""

__version__ = "0.1.0"
