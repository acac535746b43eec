"""The lock under which this package computes with mpmath.

mpmath caches log 2, pi and gamma. Two threads can leave the caches inconsistent, even if each
thread uses a context of its own.
"""

from __future__ import annotations

import os
import threading

LOCK = threading.RLock()

# Hold the lock during a fork, so that the child does not inherit half-filled caches.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )
