#!/usr/bin/env python
"""Django's command line of the platform: `manage.py up` starts it, `manage.py help` lists the rest.

A setting that cannot be used ends it with the setting's name and what mends it, not with a traceback. So does
Ctrl+C while `up` is still being read in; from then on it stops in good order.
"""

import os
import signal
import sys


def main() -> None:
    if sys.argv[1:2] == ["up"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")
    try:
        from spakweb.ground.environment import BadSetting
    except ModuleNotFoundError:
        sys.exit(
            "manage.py: the project is not installed here; run `make setup`, then .venv/bin/python manage.py"
        )
    try:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except BadSetting as bad:
        sys.exit(f"manage.py: {bad}")


if __name__ == "__main__":
    main()
