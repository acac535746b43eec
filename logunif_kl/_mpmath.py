"""The lock under which this package computes with mpmath.

mpmath keeps log 2, pi and gamma in caches that two threads can leave inconsistent, whichever of its
contexts they use.
"""

from __future__ import annotations

import os
import threading

LOCK = threading.RLock()

# Hold the lock during a fork, because the child has no thread that would complete the caches.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )
