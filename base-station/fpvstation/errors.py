"""Exception for everything that a person has to mend."""


class StationError(Exception):
    """Refusal or fault; the text gives the reason and the next step."""
