"""The broker's settings as they are now: what it was started with under what was set since."""

import logging
from typing import Final

from runnel.cluster.image import Image
from runnel.cluster.values import ConfigOwner
from runnel.config.definition import ConfigError
from runnel.config.dynamic import Layers, effective
from runnel.config.settings import Settings

_log = logging.getLogger(__name__)
DEFAULT_BROKER: Final = ConfigOwner("broker", "")


def layers_of(image: Image, settings: Settings) -> Layers:
    own = ConfigOwner("broker", str(settings.node_id))
    return Layers(image.configs_of(own), image.configs_of(DEFAULT_BROKER), settings.given)


def settings_now(image: Image, started: Settings) -> Settings:
    """What was accepted once may contradict what the next start is given: then that counts."""
    try:
        return effective(started, layers_of(image, started))
    except ConfigError as error:
        _log.error("settings made while running are left out: %s", error)
        return started
