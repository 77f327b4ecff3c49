"""HTTP in front of the runtime: wire protocols, tenants, ledger, metrics, dashboard and the command line.

Importing this package imports nothing else: the command line must answer `--help` without loading torch.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
