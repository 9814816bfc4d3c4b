"""The rules, and the settings of a session that switch them off, force or verify them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lance_engine.base import nearest_name
from lance_engine.errors import InvalidArgumentError

#: The rules by name, and what each of them does.
RULES: Final[Mapping[str, str]] = {
    "metadata_aggregates": "count(*), min and max of a whole table come from metadata, without a scan",
    "filters": "the scan drops rows that do not pass a condition",
    "join_filters": "the scan of a large table drops rows without a match in a small one",
    "limit": "the scan stops after the rows that LIMIT returns, and skips those before OFFSET",
    "top_n": "the scan drops rows beyond the last value that ORDER BY ... LIMIT returns",
    "dictionary_keys": "the engine groups by dictionary codes, not by strings",
}
#: Switches off every rule.
ALL: Final = "all"

DISABLED, FORCE, VERIFY = "lance_disabled_pushdowns", "lance_force_pushdowns", "lance_verify"
#: The settings by name, with the environment variables that give them their initial values.
SETTINGS: Final[Mapping[str, str]] = {
    DISABLED: "LANCE_SQL_DISABLED_PUSHDOWNS",
    FORCE: "LANCE_SQL_FORCE_PUSHDOWNS",
    VERIFY: "LANCE_SQL_VERIFY",
}
_BOOLEANS: Final = {
    "true": True, "on": True, "yes": True, "1": True, "": False, "false": False, "off": False, "no": False,
    "0": False,
}  # fmt: skip


@dataclass(frozen=True)
class Pushdowns:
    """Which rules a session uses.

    `disabled` are the names of those that it does not use. `force`: tables may be of any size, and a rule
    applies even if it does not pay. `verify`: queries also run without the rules, and the rows are compared.
    """

    disabled: frozenset[str] = frozenset()
    force: bool = False
    verify: bool = False

    def allow(self, rule: str) -> bool:
        """Whether the session uses a rule."""
        assert rule in RULES, rule
        return rule not in self.disabled

    def with_setting(self, name: str, value: str) -> Pushdowns:
        """The same with another value of a setting; InvalidArgumentError if it cannot have that value."""
        match name:
            case "lance_disabled_pushdowns":
                return replace(self, disabled=_names(value))
            case "lance_force_pushdowns":
                return replace(self, force=_boolean(name, value))
        return replace(self, verify=_boolean(name, value))

    def setting(self, name: str) -> str:
        """The value of a setting as text."""
        match name:
            case "lance_disabled_pushdowns":
                is_all = self.disabled == RULES.keys()
                return ALL if is_all else ",".join(rule for rule in RULES if rule in self.disabled)
            case "lance_force_pushdowns":
                return str(self.force).lower()
        return str(self.verify).lower()


#: Without any rule, as when queries are verified.
NO_PUSHDOWNS: Final = Pushdowns(frozenset(RULES))


def initial(name: str) -> str:
    """The value of a setting in a new session."""
    return os.environ.get(SETTINGS[name], "")


def initial_pushdowns() -> Pushdowns:
    """The rules of a new session."""
    pushdowns = Pushdowns()
    for name in SETTINGS:
        value = initial(name)
        if value:
            pushdowns = pushdowns.with_setting(name, value)
    return pushdowns


def _names(value: str) -> frozenset[str]:
    names = [name.strip().lower() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in RULES and name != ALL:
            near = nearest_name(name, (*RULES, ALL))
            hint = f"Did you mean {near!r}? " if near else ""
            raise InvalidArgumentError(
                f"Unknown pushdown {name!r}", remedy=f"{hint}Choose from {', '.join(RULES)}, or {ALL!r}"
            )
    return frozenset(RULES) if ALL in names else frozenset(names)


def _boolean(name: str, value: str) -> bool:
    boolean = _BOOLEANS.get(value.strip().lower())
    if boolean is None:
        raise InvalidArgumentError(f"{name} must be true or false", remedy=f"Write SET {name} = true")
    return boolean
