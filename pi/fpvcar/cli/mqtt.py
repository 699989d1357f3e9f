"""Verb `fpvcar mqtt`: publishes this car to an MQTT broker; for a car without a base station."""

import argparse
import importlib

from fpvcar.runtime.texts import NOT_INSTALLED

EXAMPLE = """\
the profile names no broker; for example, for Home Assistant:

  [mqtt]
  broker = "mqtts://nas.local"
  user = "fpvcar"
  password_file = "/etc/fpvcar/mqtt-password"

then: sudo systemctl restart fpvcar-mqtt"""
LIBRARIES = {"paho": "paho-mqtt"}
"""Package of Python -> its Debian package without python3-, if the names differ."""


def describe(verb: argparse.ArgumentParser) -> None:
    """Write the description of the verb."""
    verb.description = (
        f"{verb.description}. Publishes the state and events of the fpvcar run of this machine, "
        "and takes stops if the profile allows it; no client of the broker can drive the car. The "
        "section [mqtt] of the profile names the broker. On a Pi: sudo systemctl enable --now "
        "fpvcar-mqtt. A base station publishes its cars itself: while it does, this is silent. See "
        "docs/ways-out/smart-home.md."
    )


def main(arguments: argparse.Namespace) -> int:
    """Run the verb, until a signal. Raises ConfigError, OSError."""
    import asyncio

    from fpvcar.cli.verbs import without_authorities
    from fpvcar.config import ConfigError, profiles
    from fpvcar.runtime import paths

    profile = profiles.load(arguments.profile, arguments.overrides)
    settings = profile.mqtt
    if not settings.broker:
        raise ConfigError(f"{arguments.profile}: {EXAMPLE}")
    try:
        with without_authorities():
            from fpvcar.mqtt import service
        if settings.stills:
            importlib.import_module("av")
    except ImportError as fault:
        name = (fault.name or "").partition(".")[0]
        command = f"sudo apt install python3-{LIBRARIES.get(name, name)}"
        command += ", or pip install 'fpvcar[mqtt]'"
        raise ConfigError(NOT_INSTALLED(program=name, command=command)) from None
    asyncio.run(service.run(settings, profile.car.name, arguments.port, paths.state_directory()))
    return 0
