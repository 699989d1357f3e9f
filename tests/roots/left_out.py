"""Unit tests that do not run in a root, by name and with the reason. This is the only list."""

from pathlib import PurePath

NO_MUJOCO = "the emulated car needs MuJoCo, which Debian has not"
NO_PYARROW = "Debian has no pyarrow: a car without it offers CSV"
NO_DUCKDB = "Debian has neither pyarrow nor DuckDB: a station without them answers no queries"
NO_ZEROCONF = "only a station hears cars, and the roots have what a car depends on"
NO_SERVER = "an S3 server is built by Go, and Debian's boto3 is older"
NO_SCHEMAS = "Foxglove's own schemas want a newer protobuf than Debian's"
NO_DPKG = "the packages are unpacked: dpkg knows none of them"
ROOT_ONLY = "root's namespace has no other user"
ELSEWHERE = {
    "fpvbench": NO_MUJOCO,
    "benchmarks": "figures of this computer",
    "calibration/test_true_values.py": NO_MUJOCO,
    "doctor/test_packages.py::test_installed_packages_and_versions_are_those_of_dpkg": NO_DPKG,
    "drive/test_guard_walls.py": NO_MUJOCO,
    "fpvstation/test_command_line.py::test_invalid_interface_is_reported": NO_ZEROCONF,
    "fpvstation/fetch/test_discover.py": NO_ZEROCONF,
    "fpvstation/replicas/bucket": NO_SERVER,
    "fpvstation/replicas/test_losses.py": NO_SERVER,
    "fpvstation/query": NO_DUCKDB,
    "fpvstation/web/test_moments_api.py": NO_DUCKDB,
    "fpvstation/web/test_query_api.py": NO_DUCKDB,
    "library/test_driver_spans.py": NO_MUJOCO,
    "depth/test_camera.py": NO_MUJOCO,
    "recordings/test_foreign.py": NO_SCHEMAS,
    "recordings/test_messages.py": NO_SCHEMAS,
    "recordings/export/test_export.py::test_parquet_has_the_same_rows_as_csv": NO_PYARROW,
    "runtime/test_files.py::test_file_has_its_owner_before_its_name": ROOT_ONLY,
    "library/api/test_recordings_download.py"
    "::test_tables_are_exported_without_recordings[parquet]": NO_PYARROW,
}
"""Folders, files and tests of tests/unit that are left out in every root."""
PROCESSES = "real processes in real time, which a clock judges"
DROPPED = "QEMU's sockets do not say what was dropped: no SO_RXQ_OVFL"
TCP_INFO = "QEMU's user mode gives four bytes of TCP_INFO: no picture or sound is sent"
COPIES = "seat/test_redundant_link.py"
ROUTES = "seat/test_routes.py"
DATAGRAMS = "video/programs/test_datagrams.py"
EMULATED = {
    "devices/test_linux_pins.py::test_missing_chip_error_lists_the_chips_found": (
        "QEMU refuses an ioctl that it does not know: ENOSYS, not ENOTTY"
    ),
    "devices/test_guardian.py": PROCESSES,
    f"{COPIES}::test_copies_are_only_for_the_page_at_the_wheel": TCP_INFO,
    f"{COPIES}::test_copies_end_with_their_video_socket": TCP_INFO,
    f"{COPIES}::test_copies_take_only_wishes_and_pings_at_a_limited_rate": TCP_INFO,
    f"{COPIES}::test_strangers_do_not_displace_the_drivers_copies": TCP_INFO,
    f"{COPIES}::test_units_go_by_both_sockets_and_wishes_by_either": TCP_INFO,
    f"{COPIES}::test_copies_after_another_page_takes_the_wheel_are_closed": TCP_INFO,
    f"{COPIES}::test_copies_after_drive_reconnects_carry_pictures_and_fresh_wishes": TCP_INFO,
    f"{COPIES}::test_copies_after_drive_reconnects_drop_wishes_with_an_old_nonce": TCP_INFO,
    "seat/test_metrics.py::test_metrics_give_the_figures_of_a_driving_car": (
        "QEMU's /proc/self/stat says that a process has no memory"
    ),
    f"{ROUTES}::test_full_video_socket_still_admits_the_driver": TCP_INFO,
    f"{ROUTES}::test_video_with_own_origin_or_cookie_needs_no_hello": TCP_INFO,
    f"{ROUTES}::test_strangers_with_a_driver_id_take_no_drivers_place": TCP_INFO,
    f"{ROUTES}::test_waiting_video_socket_without_a_hello_ends": TCP_INFO,
    f"{ROUTES}::test_second_camera_is_woken_by_its_viewers_and_has_its_own_places": TCP_INFO,
    "intercom/test_socket.py": TCP_INFO,
    "seat/test_video_socket.py": TCP_INFO,
    "wheels/test_hat.py": PROCESSES,
    "wheels/test_process.py": PROCESSES,
    "video/test_camera.py::test_units_arrive_whole": PROCESSES,
    "video/test_cameras.py": PROCESSES,
    "video/test_encoder_choice.py::test_hung_encoder_is_replaced_by_libx264": PROCESSES,
    f"{DATAGRAMS}::test_receiver_hears_only_the_started_process": DROPPED,
    f"{DATAGRAMS}::test_receiver_listens_on_loopback_only": DROPPED,
    f"{DATAGRAMS}::test_datagrams_dropped_by_the_kernel_count_as_lost_unit": DROPPED,
    "video/programs/test_pi_camera.py": PROCESSES,
    "video/programs/test_rpicam.py": PROCESSES,
    "video/programs/test_webcam.py": PROCESSES,
    "fpvstation/test_many_sessions.py::test_very_many_sessions": "judges a clock",
}
"""Tests that are also left out where the processor is QEMU's user mode."""


def names(emulated: bool) -> dict[str, str]:
    """Return every name that is left out, with the reason."""
    return ELSEWHERE | (EMULATED if emulated else {})


def whole(file: str, emulated: bool) -> bool:
    """Return whether this file of tests/unit, or a folder with it, is left out."""
    return bool({file, *map(str, PurePath(file).parents)} & names(emulated).keys())


def options(emulated: bool) -> list[str]:
    """Return the pytest options that leave out single tests."""
    single = [name for name in names(emulated) if "::" in name]
    return [f"--deselect=tests/unit/{name}" for name in single]
