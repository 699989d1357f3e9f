"""The table of failures in docs/station.md: each row has its tests."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, HEADING = ROOT / "docs/station.md", "## What a failure costs"
STATION = "tests/unit/fpvstation"
SCHEDULES = f"{STATION}/test_schedules.py::test_random_failures_lose_no_recording"
LOSSES = f"{STATION}/replicas/test_losses.py::test_sessions_come_back_from_any_place_that_is_left"
TIERS, BUCKET = f"{STATION}/replicas/test_tiers.py", f"{STATION}/replicas/bucket"
MOVES = f"{STATION}/replicas/test_tiers_faults.py"
DAMAGE = f"{STATION}/replicas/test_recall_damage.py"
FAULTS, REFUSALS = f"{BUCKET}/test_bucket_faults.py", f"{BUCKET}/test_bucket_refusals.py"
VERBS = f"{BUCKET}/test_bucket_verbs.py"
AUDIT, BOUND = f"{STATION}/store/test_audit.py", f"{STATION}/store/test_bound.py"
PULL, ODD = f"{STATION}/fetch/test_pull.py", f"{STATION}/test_odd_disk.py"
OLD, ARCHIVED = f"{STATION}/replicas/test_old_replicas.py", f"{STATION}/store/test_archived.py"
OFFICE = "tests/rdma/copy/test_office.py"
SNAPSHOTS = "tests/rdma/snapshots/test_snapshots.py"
SENT = "tests/rdma/snapshots/test_sent_snapshots.py"
TESTS = {
    "the store's disk is lost": (
        LOSSES,
        f"{OFFICE}::test_session_of_lost_store_is_restored_by_name",
        f"{STATION}/store/test_store.py::test_full_copy_of_a_store_is_a_store",
    ),
    "the archive's disk is lost, or its bucket": (LOSSES,),
    "a remote is lost": (
        f"{STATION}/replicas/test_losses.py::test_successor_of_a_lost_office_gets_all_sessions",
    ),
    "several places are lost at once": (LOSSES,),
    "the link is cut, stalls, or corrupts bytes": (
        SCHEDULES,
        f"{STATION}/fetch/test_incoming.py::test_damaged_piece_is_requested_again",
    ),
    "the station is killed, or loses power, anywhere": (
        SCHEDULES,
        "tests/e2e/recordings/test_station.py::test_drives_come_home_though_processes_are_killed",
    ),
    "its disk is full or read-only": (
        f"{PULL}::test_full_or_read_only_disk_ends_the_round_at_once",
    ),
    "its file system cannot rename, sync or lock files": (
        f"{ODD}::test_unsuitable_file_system_is_reported_at_the_start",
        f"{ODD}::test_disk_without_locks_is_refused",
    ),
    "its disk rejects data (a sync failed)": (
        f"{ODD}::test_bytes_lost_by_a_failed_sync_are_fetched_again",
        f"{ODD}::test_kill_after_a_failed_sync_keeps_no_lost_bytes",
    ),
    "its disk is unmounted while it runs": (
        f"{PULL}::test_unmounted_disk_gets_no_byte_and_gives_no_receipt",
    ),
    "a file is damaged on the car's card": (
        f"{STATION}/fetch/test_client.py::test_segment_damaged_on_the_car_gets_no_receipt",
        f"{STATION}/web/test_page.py::test_segment_damaged_on_a_car_is_a_fault",
    ),
    "one recording cannot be read or stored": (
        f"{PULL}::test_failed_segment_does_not_block_the_next",
        f"{STATION}/fetch/test_scheduler.py::test_bad_segment_is_retried_with_growing_pauses",
    ),
    "a remote is away, full, or killed midway": (
        SCHEDULES,
        f"{STATION}/replicas/test_replicate.py::test_absent_office_is_retried_with_growing_pauses",
    ),
    "the server of a bucket is away, full, slow, killed midway, or truncates its answers": (
        f"{FAULTS}::test_random_faults_end_with_a_whole_bucket",
    ),
    "keys of a bucket expire or are revoked, or this machine's clock is wrong": (
        f"{REFUSALS}::test_revoked_keys_are_named_and_new_ones_need_no_restart",
        f"{REFUSALS}::test_refusal_names_the_next_step",
        f"{REFUSALS}::test_wrong_clock_is_named",
    ),
    "two stores are given one bucket and prefix": (
        f"{REFUSALS}::test_two_stores_claim_a_bucket_once",
    ),
    "a bit of `SHA256SUMS` flips, or the list is truncated or deleted": (
        f"{AUDIT}::test_flipped_bit_of_a_list_is_named_and_repaired",
        f"{AUDIT}::test_deleted_or_cut_list_is_written_again_by_its_records",
        f"{AUDIT}::test_deleted_list_without_records_is_named_until_the_car_tells",
    ),
    "a record in `.copies` is damaged": (
        f"{AUDIT}::test_record_that_cannot_be_decoded_is_named_and_written_again",
        f"{AUDIT}::test_file_and_line_prove_a_damaged_record_wrong",
    ),
    "a copy rots at a remote": (
        f"{OLD}::test_copy_that_rotted_at_the_office_is_sent_again",
        f"{OLD}::test_evicted_session_is_judged_there_and_comes_back_if_it_rots",
    ),
    "a move to the archive or back is killed, or loses power, at any step": (
        f"{TIERS}::test_kill_at_any_step_loses_and_doubles_nothing",
    ),
    "a recall on the page is cancelled, or the station ends": (
        f"{STATION}/replicas/test_recalls.py::"
        "test_cancelled_recall_leaves_the_session_in_the_archive",
        f"{STATION}/replicas/test_recalls.py::"
        "test_end_of_the_station_ends_a_copy_before_the_lock_is_free",
    ),
    "the archive is not mounted, or is unmounted during a move": (
        f"{TIERS}::test_archive_that_is_away_keeps_its_sessions",
        f"{MOVES}::test_archive_unmounted_during_a_recall_loses_no_session",
        "tests/e2e/recordings/test_archive_page.py::"
        "test_drive_in_a_folder_plays_and_is_away_when_unmounted",
    ),
    "the archive is full halfway": (f"{TIERS}::test_full_archive_leaves_the_session_here",),
    "a copy is damaged on its way back from the archive": (
        f"{MOVES}::test_copy_damaged_on_its_way_back_keeps_the_archived_one",
    ),
    "the store is too full for a recall": (
        f"{STATION}/replicas/test_recalls.py::test_store_without_room_is_named_before_any_byte_moves",
        f"{STATION}/replicas/test_recalls.py::test_disk_that_fills_up_is_named",
    ),
    "a copy rots in the archive, or its disk cannot read it": (
        f"{TIERS}::test_bad_copy_in_the_archive_is_named_and_kept",
        f"{DAMAGE}::test_unreadable_sector_costs_only_its_file",
        f"{DAMAGE}::test_rotten_file_is_tried_again_once_a_day_until_it_is_right",
    ),
    "a bucket omits a file in its list, cuts or damages its answers": (
        f"{BUCKET}/test_bucket_lies.py::test_recall_from_a_bucket_that_lies_loses_nothing",
    ),
    "a session's folder in a mounted archive is renamed or missing": (
        f"{DAMAGE}::test_missing_folder_of_a_mounted_archive_is_away_and_never_empty",
        f"{DAMAGE}::test_damage_in_the_archive_is_supplied_by_an_office",
    ),
    "the link to an archived session is replaced by a file, a folder or another link": (
        f"{DAMAGE}::test_link_replaced_by_something_else_does_not_block_a_recall",
    ),
    "keys of a bucket must not delete": (
        f"{BUCKET}/test_bucket_lies.py::"
        "test_missing_right_to_delete_is_named_before_the_first_session",
        f"{BUCKET}/test_bucket_lies.py::test_recall_without_the_right_to_delete_ends",
    ),
    "a bit of one of an archived session's three lists flips": (
        f"{DAMAGE}::test_two_lists_outvote_the_third",
    ),
    "a link in the store leads to itself": (
        f"{DAMAGE}::test_loop_of_links_stops_no_other_session",
    ),
    "a record in `.archived` is damaged": (
        f"{TIERS}::test_damaged_record_loses_no_session",
        f"{VERBS}::test_damaged_record_of_a_bucket_loses_no_session",
        f"{ARCHIVED}::test_verify_names_a_damaged_record",
        f"{ARCHIVED}::test_verify_names_a_record_with_a_flipped_checksum",
        f"{ARCHIVED}::test_session_of_a_damaged_record_stays_in_the_list",
    ),
    "a car brings a segment of an archived session": (
        f"{ARCHIVED}::test_late_segments_are_kept_by_the_car_and_are_no_fault_of_it",
        f"{ARCHIVED}::test_archived_segment_gets_its_receipt_without_a_transfer",
    ),
    "the archive belongs to another store, or a link points elsewhere": (
        f"{TIERS}::test_archive_of_another_store_gets_no_data",
        f"{TIERS}::test_link_that_points_elsewhere_is_named_and_kept",
    ),
    "the store is over its bound": (
        f"{BOUND}::test_bound_never_evicts_a_session_that_an_office_lacks",
        f"{BOUND}::test_bound_without_offices_evicts_the_oldest_but_never_the_newest",
    ),
    "a stray file is in the store, or one session cannot be read": (
        f"{STATION}/catalogue/test_catalogue.py::"
        "test_catalogue_lists_all_but_an_unreadable_session",
    ),
    "a file in `.trash` cannot be deleted, or a line of `.removed` is damaged": (
        f"{STATION}/test_housekeeping.py::"
        "test_undeletable_trash_is_reported_and_the_bound_still_runs",
        f"{STATION}/store/test_store.py::test_removed_damaged_line_is_reported_and_the_others_hold",
    ),
    "a part of the station fails unexpectedly": (
        f"{STATION}/fetch/test_scheduler.py::test_internal_fault_is_logged_and_retried",
        f"{STATION}/test_service.py::test_station_ends_with_the_first_task_that_fails",
        f"{STATION}/replicas/test_recalls.py::test_defect_ends_one_recall_and_not_the_station",
    ),
    "a car is slow": (f"{PULL}::test_slow_car_gives_up_its_place_after_each_turn",),
    "a clock produces a name twice": (
        f"{STATION}/store/test_store.py::test_name_used_twice_keeps_both_segments",
        f"{STATION}/store/test_store.py::test_name_at_an_office_is_given_to_no_other_segment",
    ),
    "a session that `batch` reads is damaged": (
        f"{STATION}/batch/test_damaged_sessions.py::test_damaged_session_is_not_good",
    ),
    "a session is deleted, evicted or overwritten": (
        f"{SNAPSHOTS}::test_removed_session_and_damaged_file_are_restored",
        f"{STATION}/replicas/test_restore.py::test_removed_session_comes_back_from_the_trash",
    ),
    "a file rots on the store's disk": (
        f"{SNAPSHOTS}::test_file_that_is_bad_in_the_snapshot_too_is_not_restored",
        f"{STATION}/replicas/test_replicate.py::"
        "test_local_damage_spares_the_copy_and_is_repaired_from_it",
    ),
    "sending a snapshot is cut, at any byte": (
        f"{SENT}::test_send_cut_at_half_continues_where_it_was",
    ),
    "a byte of a sent snapshot flips, here or on its way": (
        f"{SENT}::test_flipped_byte_of_a_stream_is_found",
    ),
    "the other host is killed while it receives a snapshot": (
        f"{SENT}::test_torn_snapshot_is_deleted_and_received_again",
    ),
    "the other host is full or unmounted, or belongs to another store": (
        f"{SENT}::test_full_target_keeps_the_stream_and_continues",
        f"{SENT}::test_foreign_or_unmounted_target_gets_nothing",
    ),
    "the car drives": (
        "tests/unit/library/api/test_downloads.py::"
        "test_reader_beside_a_driver_rests_four_fifths_of_the_time",
        "tests/unit/library/api/test_downloads.py::test_download_beside_a_driver_is_slowed",
    ),
    "no station comes": (
        "tests/unit/recorder/test_retention.py::test_room_is_made_by_fetched_and_then_the_oldest_files",
        "tests/unit/recorder/test_retention.py::test_status_reports_free_space_and_station",
    ),
}
"""Event of each row, and the tests of its consequence."""


def rows() -> list[str]:
    """Return the events of the table."""
    part = PAGE.read_text(encoding="utf-8").partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    events = re.findall(r"^\| (.+?) \| ", part, re.M)
    return [event for event in events if event != "event"]


def test_rows_of_the_table_have_tests() -> None:
    assert rows() == list(TESTS)


def test_tests_of_the_rows_exist() -> None:
    for names in TESTS.values():
        for place in names:
            file, _, name = place.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), place
