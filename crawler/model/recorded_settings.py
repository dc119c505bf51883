"""PURE. Settings as plain values with flat names: recorded with every run, compared, and made settings again.

    flat(config)                    {"crawler.max-depth": 3, …, "quality": ["a.test from https://a.test/"], "stub": []}
    dump(config)                    the same as JSON, as run events carry it
    read(text)                      that JSON as values; None if it is none
    restored(values, config)        `config` with those values
    changes(before, now)            one line for each difference

All settings that `Config.config_hash` covers are in them; paths and the network are not.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import orjson

from crawler.model.settings import (
    CapRule,
    Config,
    ExtractRule,
    GarbageRule,
    PageTypeRule,
    QualityEntry,
    RevisitSettings,
    ScopeSettings,
    StoreSettings,
    ValidationSettings,
)

Values = dict[str, Any]

_SECTIONS = ("crawler", "user_agent", "traps", "limits", "discovery")
# Sections that are younger than the records: a setting of theirs is in them once it is changed.
_YOUNGER: dict[str, type[ValidationSettings] | type[StoreSettings] | type[RevisitSettings]] = {
    "revisit": RevisitSettings,
    "validation": ValidationSettings,
    "store": StoreSettings,
}
_LEFT_OUT = {("store", "file_mode")}  # like paths, it decides nothing
_LISTS = ("quality", "blacklist", "stub", "garbage", "scope.allow", "scope.deny", "page-type", "cap", "extract")
_SCOPED = " scope "  # before the rules of an entry


def flat(config: Config) -> Values:
    """The settings by flat names."""
    values: Values = {}
    for section in _SECTIONS:
        for name, value in asdict(getattr(config, section)).items():
            values[_flat_name(section, name)] = list(value) if isinstance(value, tuple) else value
    values["quality"] = [_entry_text(entry) for entry in config.quality]
    values["blacklist"] = list(config.blacklist)
    values["stub"] = list(config.stub)
    for section, kind in _YOUNGER.items():
        usual = asdict(kind())
        for name, value in asdict(getattr(config, section)).items():
            if value != usual[name] and (section, name) not in _LEFT_OUT:
                values[_flat_name(section, name)] = list(value) if isinstance(value, tuple) else value
    if config.garbage:
        values["garbage"] = [orjson.dumps(asdict(rule)).decode() for rule in config.garbage]
    for name, patterns in (("scope.allow", config.scope.allow), ("scope.deny", config.scope.deny)):
        if patterns:
            values[name] = list(patterns)
    for name, rules in (("page-type", config.page_types), ("cap", config.caps), ("extract", config.extract)):
        if rules:
            values[name] = [orjson.dumps(asdict(rule)).decode() for rule in rules]
    return values


def dump(config: Config) -> str:
    return orjson.dumps(flat(config)).decode()


def read(text: str) -> Values | None:
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def restored(values: Values, config: Config) -> Config:
    """`config` with the recorded settings in place of its own. Names that are missing keep the config's value,
    except those of [validation], [store], [[garbage]] and the rules about pages: they are recorded where they differ
    from their defaults.
    """
    changed: dict[str, Any] = {}
    for section in _SECTIONS:
        own = getattr(config, section)
        known = {field.name: _flat_name(section, field.name) for field in fields(own)}
        new = {name: _value(values[key]) for name, key in known.items() if key in values}
        changed[section] = replace(own, **new)
    if "quality" in values:
        changed["quality"] = tuple(_entry(str(text)) for text in values["quality"])
    for name in ("blacklist", "stub"):
        if name in values:
            changed[name] = tuple(values[name])
    for section, kind in _YOUNGER.items():
        names = {field.name: _flat_name(section, field.name) for field in fields(kind)}
        changed[section] = kind(**{name: _value(values[key]) for name, key in names.items() if key in values})
    changed["garbage"] = tuple(GarbageRule(**orjson.loads(rule)) for rule in values.get("garbage", ()))
    changed["scope"] = ScopeSettings(*(tuple(values.get(name, ())) for name in ("scope.allow", "scope.deny")))
    changed["page_types"] = tuple(PageTypeRule(**orjson.loads(rule)) for rule in values.get("page-type", ()))
    changed["extract"] = tuple(ExtractRule(**orjson.loads(rule)) for rule in values.get("extract", ()))
    changed["caps"] = tuple(CapRule(**orjson.loads(rule)) for rule in values.get("cap", ()))
    return replace(config, **changed)


def changes(before: Values, now: Values) -> list[str]:
    """One line for each difference: `crawler.max-depth: 3 → 2`, `blacklist: + ads.example`.

    A setting that is missing is younger than the record: it had its default.
    """
    lines = []
    defaults = _defaults()
    for name in sorted(before.keys() | now.keys()):
        usual: list[str] | None = [] if name in _LISTS else None
        was, is_now = (values.get(name, defaults.get(name, usual)) for values in (before, now))
        if was == is_now:
            continue
        if name in _LISTS and isinstance(was, list) and isinstance(is_now, list):
            old, new = set(was), set(is_now)
            removed = [f"− {entry}" for entry in was if entry not in new]
            added = [f"+ {entry}" for entry in is_now if entry not in old]
            lines += [f"{name}: {entry}" for entry in removed + added] or [f"{name}: another order"]
        else:
            lines.append(f"{name}: {_show(was)} → {_show(is_now)}")
    return lines


def _defaults() -> Values:
    """What each setting is where it is not recorded."""
    younger = {
        _flat_name(section, name): list(value) if isinstance(value, tuple) else value
        for section, kind in _YOUNGER.items()
        for name, value in asdict(kind()).items()
    }
    return younger | flat(Config())


def _flat_name(section: str, name: str) -> str:
    return f"{section}.{name}".replace("_", "-")


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _entry_text(entry: QualityEntry) -> str:
    text = f"{entry.name} from {' '.join(entry.seeds)}"
    return text if entry.scope == ScopeSettings() else f"{text}{_SCOPED}{orjson.dumps(entry.scope).decode()}"


def _entry(text: str) -> QualityEntry:
    name, _, rest = text.partition(" from ")
    seeds, _, scope = rest.partition(_SCOPED)
    domain, slash, path = name.partition("/")
    rules = {key: tuple(patterns) for key, patterns in orjson.loads(scope).items()} if scope else {}
    return QualityEntry(domain, tuple(seeds.split()), slash + path.removesuffix("/"), ScopeSettings(**rules))


def _show(value: Any) -> str:
    return orjson.dumps(value).decode() if not isinstance(value, str) else value or '""'
