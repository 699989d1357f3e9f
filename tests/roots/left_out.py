"""Unit tests that do not run in a root, by name and with the reason. This is the only list."""

NO_MUJOCO = "the emulated car needs MuJoCo, which Debian has not"
NO_PYARROW = "Debian has no pyarrow: a car without it offers CSV"
NO_ZEROCONF = "only a station hears cars, and the roots have what a car depends on"
NO_SCHEMAS = "Foxglove's own schemas want a newer protobuf than Debian's"
ELSEWHERE = {
    "fpvbench": NO_MUJOCO,
    "benchmarks": "figures of this computer",
    "calibration/test_true_values.py": NO_MUJOCO,
    "drive/test_guard_walls.py": NO_MUJOCO,
    "fpvstation/test_command_line.py::test_no_interface_is_said": NO_ZEROCONF,
    "fpvstation/fetch/test_discover.py": NO_ZEROCONF,
    "recordings/library/test_driver_spans.py": NO_MUJOCO,
    "sensors/test_depth_camera.py": NO_MUJOCO,
    "recordings/test_foreign.py": NO_SCHEMAS,
    "recordings/test_messages.py": NO_SCHEMAS,
    "recordings/export/test_export.py::test_parquet_says_the_same_as_csv": NO_PYARROW,
    "server/test_recordings_offers.py"
    "::test_tables_alone_are_made_while_they_are_sent[parquet]": NO_PYARROW,
}
"""Folders, files and tests of tests/unit that are left out in every root."""
PROCESSES = "real processes in real time, which a clock judges"
DROPPED = "QEMU's sockets do not say what was dropped: no SO_RXQ_OVFL"
TCP_INFO = "QEMU's user mode gives four bytes of TCP_INFO: no picture is sent"
COPIES = "server/sockets/test_redundant_link.py"
EMULATED = {
    "devices/test_linux_pins.py::test_no_chip_is_said_with_what_there_is": (
        "QEMU refuses an ioctl that it does not know: ENOSYS, not ENOTTY"
    ),
    "devices/test_guardian.py": PROCESSES,
    f"{COPIES}::test_it_ends_with_the_video_it_copies": TCP_INFO,
    f"{COPIES}::test_it_takes_wishes_alone_and_not_too_many": TCP_INFO,
    f"{COPIES}::test_strangers_take_no_place_of_it": TCP_INFO,
    f"{COPIES}::test_units_go_by_both_and_a_wish_by_either": TCP_INFO,
    f"{COPIES}::test_copies_after_another_page_takes_the_wheel_are_closed": TCP_INFO,
    f"{COPIES}::test_copies_after_drive_reconnects_carry_pictures_and_fresh_wishes": TCP_INFO,
    f"{COPIES}::test_copies_after_drive_reconnects_drop_wishes_with_an_old_nonce": TCP_INFO,
    "server/api/test_metrics.py::test_the_car_in_figures": (
        "QEMU's /proc/self/stat says that a process has no memory"
    ),
    "server/test_routes.py"
    "::test_a_crowd_at_the_video_bars_neither_the_driver_nor_the_stop_button": TCP_INFO,
    "server/sockets/test_video_socket.py": TCP_INFO,
    "wheels/test_hat.py": PROCESSES,
    "wheels/test_process.py": PROCESSES,
    "video/test_camera.py::test_units_arrive_whole": PROCESSES,
    "video/test_cameras.py": PROCESSES,
    "video/test_datagrams.py::test_only_the_process_that_was_started_is_heard": DROPPED,
    "video/test_datagrams.py::test_it_listens_on_loopback_only": DROPPED,
    "video/test_datagrams.py::test_what_the_kernel_dropped_is_counted": DROPPED,
    "video/test_pi_camera.py": PROCESSES,
    "video/test_rpicam.py": PROCESSES,
    "video/test_webcam.py": PROCESSES,
    "fpvstation/test_many_sessions.py::test_very_many_sessions": "judges a clock",
}
"""Tests that are also left out where the processor is QEMU's user mode."""


def names(emulated: bool) -> dict[str, str]:
    """Return every name that is left out, with the reason."""
    return ELSEWHERE | (EMULATED if emulated else {})


def whole(file: str, emulated: bool) -> bool:
    """Return whether this file of tests/unit, or its folder, is left out."""
    return bool({file, file.partition("/")[0]} & names(emulated).keys())


def options(emulated: bool) -> list[str]:
    """Return the pytest options that leave out single tests."""
    single = [name for name in names(emulated) if "::" in name]
    return [f"--deselect=tests/unit/{name}" for name in single]
