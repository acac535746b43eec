"""``python -m logunif_kl`` is ``logunif-kl``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
