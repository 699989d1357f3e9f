"""Refusals of requests, by key and values: pages translate them, logs and programs get English.

raise Refusal("car_moves") -> 409, X-Refusal: key=car_moves, English body -> web/lib/refusal.js
"""

from urllib.parse import urlencode

from fpvcar.runtime.sentences import sent_as

ENGLISH = {
    # rights
    "drive_code_needed": "Only drivers can see recordings: enter the drive code.",
    "password_needed": "Enter the password to see this page.",
    "driver_needed": "Only a driver can change this: enter the drive code.",
    "grown_up_needed": "Only a grown-up can do that: enter the grown-up code.",
    "wrong_code": "That is not the code.",
    "too_many_codes": "Too many wrong codes: try again in {wait_s} s.",
    "own_page": "Open the car's own page.",
    "foreign_host": 'Host "{host}" refused: open this page by its address, or as {name}.',
    # recordings
    "recording_gone": "This recording no longer exists.",
    "recording_open": "{name} is still being written: try again in a minute.",
    "no_picture": "No picture was recorded here.",
    "drive_gone": "This drive no longer exists: reload the page.",
    "drive_open": "This drive is still being recorded: delete it a minute after its end.",
    "title": 'The name "{title}" was refused: use at most {most} visible characters.',
    "export_open": "The recordings are still being read: try again in a moment.",
    "export_gone": "There is no such export: begin it again.",
    "exports_busy": "{most} exports are under way: wait for one to end, or cancel it.",
    # a base station
    "session_shared": "Other drives are in its session. To remove all: fpvstation rm {name}",
    "session_kept": "The station keeps this drive: {reason}",
    "page_old": "This page is out of date: reload it.",
    "https_only": "The station needs https, which protects the password and the recordings: "
    "open {url}",
    "searches_busy": "{most} searches are in progress: try again in a minute.",
    # the menu
    "car_moves": "The car is moving: wait until it stops, then try again.",
    "check_failed": "The check failed: {reason}. By hand: sudo fpvcar doctor",
    "here_only": "The car listens on this computer only, so an invitation would not work: "
    "start it with --host 0.0.0.0.",
    "no_network": "The car is on no network, so a phone could not open the invitation: join a "
    "network, then invite again.",
    "no_wifi": "The Wi-Fi service is not running: see systemctl status fpvcar-network.",
    "driven": "Someone is driving, and the car would stop: give up the wheel first.",
    "ssid": "The network's name has {count} characters: expected 1 to 32 visible ones.",
    "wifi_key": "The key was refused: expected 8 to 63 letters, digits and symbols.",
    "intercom_https": "The intercom needs https: open the car's https address.",
    # the first boot of a card
    "setup_far": "Answer these questions over the car's own Wi-Fi or a cable: open {url} there.",
    "setup_answered": "The questions are answered already: the car is starting.",
    "setup_unsaved": "The answers could not be saved: {reason}",
    # pages of errors, and answers without words
    "status": "error {status}",
    "page_title": "That did not work",
    "page_first": "To the start page",
    "page_missing": "There is no {path} here.",
    # calibration
    "no_file": "This car was started without a profile file.",
    "not_saved": "The value is used until the car restarts, but was not saved: {reason}",
    "step_over": "The step ended when the page was closed: begin it again.",
    "step_failed": "The step failed ({reason}): go back and begin it again.",
    "no_result": "There is nothing to keep: the step has no result yet.",
    "hold_first": "Hold the button first, and watch the wheel.",
    "drive_first": "Drive first, then enter how far the car went.",
    "range": "{value} was refused: expected {least} to {most}.",
    "no_distance": "The sensor measures no distance: place the car in front of a wall.",
    "offset": "An offset of {value} m was refused: expected at most {most} m. Point the sensor at "
    "the wall.",
    "apart": "{value} m was refused: expected at least {least} m more or less than the {before} m "
    "before. Move the car.",
    "no_voltage": "No voltage was measured yet: try again.",
}
"""Key -> English text, with {values}. `make docs` writes web/lang/en/refusals.js."""


class Refusal(ValueError):
    """Refused request; its text is English."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(ENGLISH[key].format(**values))
        sent = {name: sent_as(str(value)) or value for name, value in values.items()}
        self.header = {"X-Refusal": urlencode({"key": key, **sent})}
