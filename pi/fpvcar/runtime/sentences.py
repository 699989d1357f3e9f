"""Sentences for people, by key and values: pages translate them, logs and programs get English.

sentence("recorder_slow", seconds=7) -> "the card has not answered for 7 s"
    -> a message's `sentences`: {text: "key=recorder_slow&seconds=7"} -> web/lang/forms.js:localised

A value may be a sentence of its own. Refusals of requests: wire/refusals.py.
"""

import contextlib
import errno
import sys
import threading
from urllib.parse import parse_qsl, urlencode

ENGLISH = {
    "both": "{first}; {second}",
    "says": "{place}: {reason}",
    "starting": "starting",
    "not_installed": "{program} is not installed; {command}",
    "file_damaged": "{path}: {reason}: delete it, then {command}",
    "make_room": "make room there; the next try continues the copy",
    # errors of the operating system
    "os_eacces": "Permission denied",
    "os_ebusy": "Device or resource busy",
    "os_econnrefused": "Connection refused",
    "os_ehostunreach": "No route to host",
    "os_eio": "Input/output error",
    "os_enetunreach": "Network is unreachable",
    "os_enodev": "No such device",
    "os_enoent": "No such file or directory",
    "os_enospc": "No space left on device",
    "os_erofs": "Read-only file system",
    "os_etimedout": "Connection timed out",
    # sensors
    "noisy": "noisy: its readings jump back and forth",
    "echo_absent": "does not answer",
    "echo_stuck": "its echo does not fall",
    "echo_noise": "an echo too short to be real",
    "tof_hardware": "the laser or its supply failed",
    "tof_none": "no measurement",
    "tof_stopped": "stopped ranging",
    "tof_same": "stuck: the same reading {count} times",
    "tof_identity": "no VL53L0X: identity {found}, not {expected}",
    "tof_not_ready": "VL53L0X: {step} not ready after {seconds} s",
    "tof_calibration": "reference calibration",
    "tof_memory": "its own memory",
    "ina219_identity": "no INA219: config {found}, not {expected}",
    "ina219_silent": "INA219: no new average for {seconds} s",
    "depth_blind": "sees nothing: covered, too near, or too bright",
    "depth_silent": "sent nothing for {seconds} s",
    "depth_garbage": "its program sends no valid pictures ({reason})",
    "program_missing": "no program {program}",
    "i2c_bus": "/dev/i2c-{bus}: {reason}",
    "i2c_fault": "I2C bus {bus} address {address}: {reason}",
    "i2c_absent": "no such bus: {advice}",
    "i2c_advice": "enable I2C: sudo raspi-config nonint do_i2c 0 (or the line "
    "dtparam=i2c_arm=on in /boot/firmware/config.txt, and i2c-dev in /etc/modules), then reboot",
    "i2c_denied": "not allowed: sudo usermod -aG i2c USER, for the user who runs this",
    "i2c_kernel": "a driver of the kernel has this address",
    "i2c_hangs": "the bus hangs: is SDA or SCL held low?",
    "i2c_taken": "the bus is taken by another master",
    "i2c_read": "no chip acknowledges the read",
    "i2c_write": "no chip acknowledges the write",
    "i2c_read_failed": "I2C read failed",
    "i2c_write_failed": "I2C write failed",
    "i2c_short": "{count} bytes, expected {expected}",
    # motor pins
    "wheels_absent": "the wheels process is absent",
    "wheels_hung": "the wheels process is hung",
    "wheels_deadline": "deadline",
    "wheels_bad_message": "bad message",
    "wheels_exit": "exit",
    "wheels_past": "past",
    "wheels_too_far_ahead": "too far ahead",
    "wheels_superseded": "superseded",
    "wheels_zero_first": "zero first",
    "pins_silent": "the back end of the motor pins does not answer",
    "pigpiod_silent": "pigpiod at {host} port {port} does not answer",
    "pigpiod_absent": "pigpiod at {host} port {port}: Connection refused; start it: sudo "
    "systemctl enable --now pigpiod; without pigpiod, as on a Pi 5 and in Trixie: "
    'pins.backend = "auto" in the profile',
    "pins_closed": "{action}: connection closed",
    "pins_lost": "{action}: connection lost",
    "gpio_write": "write GPIO {gpio}",
    "gpio_late": "GPIO {gpio}: pulses are {seconds} s late",
    "gpio_taken": "GPIO {gpio} is taken by '{holder}': end that program, or switch that part off "
    "in config.txt, or wire and name another pin",
    "gpio_denied": "{path}: not allowed: sudo usermod -aG gpio USER, for the user who runs this",
    "gpio_none": "no GPIO of a Raspberry Pi (found: {found}); without a Pi: fpvcar bench",
    "guardian_none": "no guardian for the motors: {reason}",
    "guardian_hangs": "the guardian of the motors hangs",
    "guardian_gone": "the guardian of the motors is gone",
    "strict": "a motor would run on when its process dies: add the line dtparam=strict_gpiod to "
    "/boot/firmware/config.txt (sudo fpvcar setup does) and reboot; to drive all the same: "
    "--unsafe, or pins.unsafe = true",
    "lead_resistor": "{place} is not driven: PWM pulses at {hz} Hz draw {stall_a} A from "
    "{supply_v} V if the motor stalls, and its bridge bears {peak_a} A; solder a resistor of {ohm} "
    "Ω for {watts} W into the motor's lead, then confirm it: sudo fpvcar setup",
    # camera
    "camera_renewed": "its settings were changed; it is restarted",
    "camera_again": "it is started again",
    "camera_memory": "it is started again; if that was not on purpose, memory is short",
    "camera_by_hand": "start it by hand to see why",
    "camera_whole": "check that it is complete and its interpreter installed",
    "camera_processor": "it is for another processor, or lacks its #! line",
    "camera_cable": "it is started again; if that repeats, check its cable",
    "camera_off_on": "switch the car off and on again; if that repeats, check its cable",
    "camera_busy": "end the other program that has the camera",
    "camera_plug": "plug the camera in",
    "camera_path": "correct the path, or plug the camera in",
    "camera_group": "sudo usermod -aG video USER, then log in again",
    "camera_size": "choose a size and rate that the camera supports",
    "camera_profile": "correct [camera] of the profile",
    "camera_no_program": "no program {program}; install it, or correct camera.command",
    "camera_not_executable": "{path} is not executable; chmod +x {path}",
    "camera_refused": "{program} cannot be started: {reason}",
    "camera_ended": "its program ended by itself",
    "camera_exited": "its program ended with status {status}",
    "camera_exited_mute": "its program ended with status {status} and printed nothing",
    "camera_killed": "its program was killed ({signal})",
    "camera_silent": "it has sent nothing for {seconds} s",
    "camera_never": "it has sent nothing since its start, {seconds} s ago",
    "camera_no_key": "its program sends no H.264 key frame; it needs plain H.264 (Annex B) on "
    "stdout, with a key frame each second (ffmpeg: -c:v libx264 -g 30 -f h264)",
    "camera_rare_keys": "no H.264 key frame for {seconds} s, so a new page waits for its picture; "
    "make its encoder send one each second (ffmpeg: -g 30)",
    "camera_b_frames": "its H.264 has B-frames, which are late and out of order; switch them off "
    "(ffmpeg: -bf 0)",
    "camera_fields": "its H.264 is interlaced, which browsers show in stripes; make it progressive "
    "(ffmpeg: -vf yadif)",
    "camera_format": "its program sends {format}; it needs plain H.264 (Annex B) on stdout "
    "(ffmpeg: -c:v libx264 -f h264)",
    "camera_samples": "its H.264 has {chroma} samples of {bits} bits, which few browsers show; "
    "make its encoder use 4:2:0 and 8 bits (ffmpeg: -pix_fmt yuv420p)",
    "camera_garbage": "its program does not send valid H.264 ({reason})",
    "camera_closed": "its program closed its output",
    # a camera's own program
    "camera_mode": "{sensor}: {width} × {height}, {bits} bits; the picture is {degrees}° wide, "
    "{across} % × {down} % of the sensor; up to {fps} frames per second, readout {readout} ms",
    "camera_mode_lens": "{sensor}: {width} × {height}, {bits} bits; the picture has {across} % × "
    "{down} % of the sensor, its angle depends on the lens; up to {fps} frames per second, "
    "readout {readout} ms",
    "camera_mode_unknown": "{sensor}: a sensor without a table of modes; its program chooses one, "
    "and the picture may show a part of the view",
    "camera_rate_fast": 'the whole view has {most} of {fps} frames per second; the view "fast" '
    "has {fast}, with {across} % × {down} % of the sensor",
    "camera_rate_most": "this sensor has at most {most} of {fps} frames per second; choose a lower "
    "rate",
    "rate_heat": "the processor is hot or slowed down",
    "rate_load": "only {count} of {fps} arrived: the car is busy, or a webcam needs more light",
    "rate_link": "the driver's link is slow",
    "rate_lowered": "{least} instead of {fps} frames per second: {reason}; the car tries {fps} "
    "again by itself",
    "rate_kept": "{fps} frames per second are too many: {reason}; this camera cannot change its "
    "rate while it runs, so choose {least}",
    "capture_none": "{program} finds no camera {number}; check the ribbon cable, then "
    "`rpicam-hello --list-cameras`",
    "capture_busy": "the camera cannot be opened: {reason}; end the other program that has it",
    "capture_start": "the camera does not start: {reason}",
    "capture_encoder": "the board's H.264 encoder hangs ({reason}); switch the car off and on "
    "again",
    "capture_no_x264": "this rpicam-vid has no libx264 to replace a hung encoder; switch the car "
    "off and on again, or sudo apt install rpicam-apps",
    "capture_call": "{path}: {call} failed: {reason}",
    "capture_no_format": "no device offers {format} (looked at: {devices})",
    "capture_no_webcam": "no webcam on USB (looked at: {devices}); plug one in, or name it by "
    "camera.device of the profile",
    "capture_offer": "{path} does not offer {formats}",
    "capture_unplugged": "{path}: the camera was unplugged; plug it in again",
    "capture_rare_keys": "its H.264 had no key frame for {seconds} s",
    # recorder
    "recorder_ended": "the recorder's thread ended by itself",
    "recorder_slow": "the card has not answered for {seconds} s",
    # Wi-Fi
    "wifi_key_wrong": "wrong key",
    "wifi_key_or_silent": "wrong key, or the network stopped answering",
    "wifi_far": "the network is out of range",
    "wifi_no_address": "the network assigns no address",
    "wifi_late": "no link in time (is the key right?)",
    "wifi_broken": "connection lost",
    "wifi_denied": "NetworkManager denies access to this user: is polkitd installed?",
    "wifi_no_manager": "NetworkManager does not answer: sudo apt install network-manager, and "
    "systemctl status NetworkManager",
    "wifi_no_radio": "NetworkManager manages no Wi-Fi device of this computer: nmcli device",
    "wifi_off": "Wi-Fi is switched off: sudo raspi-config nonint do_wifi_country DE (your "
    "country), or sudo nmcli radio wifi on",
    "wifi_silent": "{program} does not answer",
    "wifi_own": "the car's own network did not open: {reason}",
    # the first boot of a card
    "setup_missing": "an answer is missing: choose board, name and country",
    "setup_board": 'board "{board}": expected one of {boards}',
    "setup_name": 'name "{name}": expected 1 to 24 letters, digits and inner hyphens, as it '
    "becomes NAME.local",
    "setup_country": 'country "{country}": expected its two capital letters in ISO 3166, as in DE '
    "or GB",
    # exports
    "export_missing": "{name}: not found",
    "export_no_parquet": "Parquet needs pyarrow, which is not installed: use CSV",
    "export_growing": "{name}: still being written, so it is not in here",
    "export_cut": "{name}: cannot be read to its end: {reason}",
    "export_more": "and {count} more",
    "export_no_picture": "no picture was recorded in this drive",
    "export_pause": "between two pictures is a pause of {hours} h: export them to two films",
    "export_no_key": "{count} pictures are left out: no key frame leads up to them",
    "export_doubled": "{count} pictures are left out: their time is in it already",
    "export_table": "{count} messages could not be read for a table",
    "lost_end": "{name}: {reason}; its data ends at {time}",
    "lost_summary": "its summary does not hold",
    "lost_unclosed": "never closed",
    "lost_bytes": "{name}: {count} bytes are missing at {time} ({reason})",
    "lost_here": "{count} bytes are missing ({reason})",
    "lost_twice": "{name}: {count} bytes are there twice at {time} ({reason})",
    "lost_messages": "{topic}: {count} messages are missing from {start} to {end}",
    "lost_edge": "{topic}: {count} messages are missing at the beginning or the end",
    # a base station
    "segment": "{count} segment",
    "segments": "{count} segments",
    "station_new": "not contacted yet",
    "station_fetching": "fetching",
    "station_sending": "sending",
    "station_late": "{url}: no answer in time",
    "station_old_car": "{url}: no station support: update fpvcar on the car",
    "station_unsigned": "{url}: answer refused: this car did not sign it",
    "station_certificate": "the car has a new certificate, and proved its identity",
    "station_full": "the store's disk is full: delete other files on it or sessions (`fpvstation "
    "rm`, then the folder .trash), or use a larger disk with --store; the car keeps the rest",
    "station_failed": "{count} failed ({name}: {reason}); retrying",
    "station_damaged": "{count} MiB arrived damaged",
    "station_cut": "{name}: transfer ended after {count} of {total} pieces",
    "station_archived": "{session} is in {place}: {step}",
    "station_away": "this drive is in the archive {place}: mount it, or bring the drive back: "
    "fpvstation recall {name}",
    "station_recall": "bring it back with `fpvstation recall {name}`",
    "station_internal": "internal fault: {reason}",
    "office_bad": "{place}: {count} files of {session} are bad or missing there ({first}); they "
    "are sent again",
    "office_damaged": "{path}: damaged here since it was verified: fpvstation verify {session}",
    "office_unmounted": "{place}: {marker} is missing there: mount its disk",
    "office_unmounted_new": "{place}: {marker} is missing there: mount its disk, or name an empty "
    "folder",
    "office_late": "{place}: rdcp timed out after a day",
    "office_other": "{place} has the sessions of another store than {store}: give each store its "
    "own folder",
    "office_disk": "{place}: {path}: the disk returns other bytes",
    "recall_lost": "{count} bad or missing in {place} ({first}): fetched again if the car or an "
    "office has it",
    "chore_list": "list",
    "chore_trash": "trash",
    "chore_unfinished": "unfinished files",
    "chore_bound": "bound",
    "chore_archive": "archive",
    "chore_sidecars": "sidecars",
    "station_unproved": "{url}: its certificate has changed ({fingerprint}...); no proof that it "
    "is {car}: {reason}",
    "station_between": "{url}: its certificate has changed ({fingerprint}...); {car} signs "
    "{own}...: a machine in the middle",
    "station_invalid": "invalid answer of the car: {reason}",
    "store_marker": "{path}: {reason}; is this folder a store?",
    "store_gone": "found the store {found}, expected {store}: mount its disk",
    "store_bytes": "{path}: the store's disk does not return the written bytes: check that disk",
    "store_name": "{path}: another segment has this name; check it",
    "no_room": "{place} is full: {session} needs {needed} MB, and {free} MB are free there: make "
    "room there",
    "bound_copies": "{over} MB over the limit of {most} MB; sessions without a copy at every "
    "office: {count} (the oldest: {first})",
    "bound_rest": "{over} MB over the limit of {most} MB: the rest is the newest session, or has a "
    "damaged list",
    "bound_unsure": "{over} MB over the limit of {most} MB; sessions whose copies no office has "
    "verified for a day: {count} (the oldest: {first})",
    "recall_no_archive": '{session} is in {place}: set archive = "{place}" in [tiers] of '
    "station.toml, then restart the station",
    "recall_damaged": "{path}: right in {place}, and damaged on its way to the store's disk: "
    "check that disk, then recall it again",
    "recall_nothing": "{place} has no right file of this session, and no office has one: put its "
    "folder back there, or count it as lost: fpvstation recall --lost {name}",
    "archive_left": "{count} files of {session} are still in {place}: fpvstation recall {name}",
    "archive_busy": "{session} has changed or is in use: archive it later",
    "archive_waits": "{place} does not have {session} yet: wait until it is copied there",
    "archive_link": "{path} links to {target}, which is not its archive: remove that link",
    "archive_foreign": "{path} is not archived: move it elsewhere",
    # next steps of a bucket
    "bucket_access": "allow these keys {right} there",
    "bucket_region": "region {region} refused: set AWS_REGION to the bucket's region",
    "bucket_token": "get new temporary keys, or use keys that do not expire",
    "bucket_keys": "set the right AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them "
    "into ~/.aws/credentials",
    "bucket_profile": "correct AWS_PROFILE, or the profile files",
    "bucket_absent": "make the bucket, or correct `target` in station.toml",
    "bucket_shared": "let only one station write there",
    "bucket_clock": "set the clock of this machine: sudo timedatectl set-ntp true",
    "bucket_network": "check the network, and AWS_ENDPOINT_URL (https://HOST:PORT); the next try "
    "continues the copy",
    "bucket_again": "the next try continues the copy",
    "bucket_refused": "the server will refuse it again: check its settings, or use another one",
    "bucket_marker": "{place}: {marker} is missing there: correct `target`; if the bucket was "
    "emptied, copy the store's there",
    "catalogue_damaged": "the catalogue is damaged; it is being rebuilt",
    "catalogue_other": "it belongs to the store {store}",
    "catalogue_removed": "it was removed",
    "query_unlisted": "{path} does not list this store: fpvstation rebuild",
    "query_damaged": "{session}: its sidecar was damaged, and is removed: ask again",
    "query_memory": "the query needs more than {memory} MB: read fewer months or columns, or give "
    "it more with --memory MB",
    # sizes of its disks
    "size_title": "How much room do I need?",
    "size_back": "Recordings",
    "size_compute": "Compute",
    "size_of_cars": "Cars",
    "size_of_hours": "Hours a day, each",
    "size_of_mbit": "Mbit/s of a car",
    "size_of_link": "Mbit/s of the link",
    "size_daily": "{gigabytes} GB a day.",
    "size_speed": "latency {latency} ms; reads {read} MB/s, synced writes {written} MB/s",
    "size_full": "full in {days} days: {free} of {total} GB are free",
    "size_verify": "verify all of it, when full: {time}",
    "size_restore": "restore all of it to the fastest disk: {time}",
    "size_mirror": "mirror a day to it: {time}; the limit is {limit}",
    "size_writes": "its writes, {rate} MB/s",
    "size_link": "the link, {rate} MB/s",
    "size_unmeasured": "no disk was measured yet: fpvstation measure DIR...",
    # the switches of the office Wi-Fi
    "sites_none": "no rules yet: write /etc/fpvsites, then `fpvsites apply`",
    "sites_off": "the rules are off: `fpvsites apply` turns them on",
    "sites_no_undo": "nothing to undo; `fpvsites off` removes the rules",
    "sites_time": 'time "{time}" refused: it is {now}; expected a later time today, HH:MM, at '
    "most 24:00",
    "sites_group": 'group "{group}" is unknown; groups: {groups}',
    "sites_apply": "apply",
    "sites_switch": "{group}: {mode} until {until}",
    "sites_everything": "everything",
    "sites_sites": "sites",
    "sites_nothing": "nothing",
    # closed sockets
    "close_hello": "no hello within {seconds} s",
    "close_full": "{most} viewers are here already (server.max_viewers)",
    "close_messages": "{count} bad messages in a row: {what}",
    "close_silent": "no message for {seconds} s",
    "close_driver": "only the driver can use it",
    "intercom_off": "a grown-up switched it off",
    "intercom_elsewhere": "it is open in another tab",
    "intercom_no_speaker": "the car has no speaker",
    "intercom_no_microphone": "the car has no microphone",
    "intercom_mute": "{program} plays nothing",
    "program_exit": "{program} ended with status {status}",
}
"""Key -> English text, with {values}. `make docs` writes web/lang/en/sentences.js."""


KNOWN_MOST = 2000
"""Sentences remembered; the least recently used ones are sent in English."""
_known: dict[str, str] = {}
_lock = threading.Lock()


def sentence(key: str, **values: object) -> str:
    """Return the English text, and remember its key and values for `sentences_in`."""
    text = ENGLISH[key].format(**values)
    sent = {name: _known.get(str(value), value) for name, value in values.items()}
    with _lock:
        _known.pop(text, None)
        _known[text] = urlencode({"key": key, **sent})
        if len(_known) > KNOWN_MOST:
            del _known[next(iter(_known))]
    return text


def sent_as(text: str) -> str:
    """Return key and values of a text as a query, in which a value that is a sentence is a query,
    too; "" for a text that is no sentence."""
    with _lock:
        sent = _known.pop(text, "")
        if sent:
            _known[text] = sent
    return sent


def received(sent: str) -> str:
    """Return the sentence of `sent_as`. Raises KeyError for one of another version."""
    values = dict(parse_qsl(sent, keep_blank_values=True))
    key = values.pop("key")
    return sentence(key, **{name: _value(text) for name, text in values.items()})


def _value(text: str) -> str:
    return received(text) if text.startswith("key=") else text


def sentences_in(*texts: str) -> dict[str, str]:
    """Return key and values of the sentences among the texts of a message, for its field
    `sentences`."""
    return {text: sent for text in texts if (sent := sent_as(text))}


def stderr_line(text: str) -> str:
    """Return a line for stderr; a parent process gets key and values, too, behind a tab."""
    sent = "" if sys.stderr.isatty() else sent_as(text)
    return f"{text}\t{sent}" if sent else text


def text_of_line(line: str) -> str:
    """Return the text of a `stderr_line`, and remember its key and values."""
    text, _, sent = line.partition("\t")
    if not sent.startswith("key="):
        return line
    with contextlib.suppress(KeyError):  # of another version
        received(sent)
    return text


STARTING = sentence("starting")


def segments(count: int) -> str:
    """Return a number of segments."""
    return sentence("segment" if count == 1 else "segments", count=count)


def os_reason(fault: OSError) -> str:
    """Return the text of a fault of the operating system."""
    key = f"os_{errno.errorcode.get(fault.errno or 0, '')}".lower()
    if key in ENGLISH and fault.strerror == ENGLISH[key]:
        return sentence(key)
    return fault.strerror or str(fault)


def fault_text(fault: Exception) -> str:
    """Return the text of a fault; an error of the system is a sentence, for pages."""
    if not isinstance(fault, OSError) or not fault.errno:
        return str(fault)
    reason = os_reason(fault)
    return sentence("says", place=fault.filename, reason=reason) if fault.filename else reason
