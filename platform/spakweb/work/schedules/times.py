"""When a cron line is due: read by cronsim, in a time zone, as Debian's cron does it.

A time that the clock skips in spring is due right after it, one that comes twice in autumn is due once. A
line with `*` or `/` for its minute or hour goes by elapsed time: none in the skipped hour, both in the
doubled one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from spakweb.ground.errors import Refused

FIELDS = 5


def next_after(cron: str, zone: str, after: datetime) -> datetime:
    """The first time after that moment, in UTC. Raises: Refused `web.schedule_cron`, `web.schedule_zone`."""
    if zone not in available_timezones():
        raise Refused("web.schedule_zone", f"There is no time zone {zone[:60]!r}.", "Europe/Berlin, UTC", 422)
    if len(cron.split()) != FIELDS:
        raise _bad("A cron line has five parts: minute, hour, day, month, day of the week.")
    try:
        found = next(CronSim(cron, after.astimezone(ZoneInfo(zone))))
    except CronSimError as error:
        raise _bad(f"This is not a cron line: {str(error)[:80].lower()}.") from error
    except StopIteration as error:
        raise _bad("This time never comes.") from error
    return found.astimezone(UTC)


def _bad(message: str) -> Refused:
    return Refused("web.schedule_cron", message, "0 6 * * 1-5 is six o'clock on working days.", 422)
