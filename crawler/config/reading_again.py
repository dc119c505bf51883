"""A config that is read again while its crawl is under way: may it take the place of the old one, and what differs?"""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from crawler.database.ingest_progress import results_kept_from
from crawler.model import recorded_settings
from crawler.model.errors import UsageError
from crawler.model.settings import Config, HookRule


class ReloadRefused(UsageError):
    """The new config is sound, but cannot take the place of the old one while stages are at work."""


def differences(before: Config, now: Config) -> list[str]:
    """One line for each setting that differs, whatever it is about: `network.read-timeout: 30000 → 5000`."""
    return recorded_settings.changes(_everything(before), _everything(now))


def require_replaceable(before: Config, now: Config) -> None:
    """Raise ReloadRefused if only a new start can change this."""
    for name, was, is_now in (
        ("workspace", before.workspace, now.workspace),
        ("output.database-path", before.map_place, now.map_place),
    ):
        if was != is_now:
            raise ReloadRefused(
                f"{name} is {is_now} now and was {was}: that cannot change under way; stop the crawl and start it again"
            )
    kept_from = results_kept_from(before.map_place)
    if before.map_hash != now.map_hash and kept_from is not None:
        raise ReloadRefused(
            f"rules that decide the map changed, and the results before run #{kept_from} are gone ([spool] results), "
            "so the map cannot be rebuilt under them; put the old rules back, or start with --fresh"
        )


def _everything(config: Config) -> dict[str, Any]:
    values = recorded_settings.flat(config)
    for field in fields(config):
        section = getattr(config, field.name)
        if field.compare and is_dataclass(section) and not isinstance(section, type):
            for name, value in asdict(section).items():
                values.setdefault(f"{field.name}.{name}".replace("_", "-"), _plain(value))
    values["hook"] = [_hook_text(hook) for hook in config.hooks]
    return values


def _hook_text(hook: HookRule) -> str:
    """A hook without its address and secret, which no output shows; the print differs when one of them does."""
    told = repr((hook.url, hook.secret, hook.command, hook.to, hook.sender))
    return f"{hook.name} (print {sha256(told.encode()).hexdigest()[:8]}): {', '.join(hook.events)}"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
