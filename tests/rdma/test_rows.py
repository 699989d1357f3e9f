"""Coverage table: the tests for each fault that similar tools were found to have, each case that
these tests must include, and each bad input. A row without a test fails."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "base-station" / "rdma"
PLACES = {"vm": "test_vm", "pair": "test_vm_pair", "units": "units.c"}
PLACES |= {"verbs": "units_verbs.c"}
C_UNITS = "c_units:test_c_units"
"""The test that runs the tests in C. Without it none of them run."""

# Each word is a test: of test_WORD.py in tests/rdma, or of base-station/rdma/tests.
FAULTS = {
    "a completion that came before the queue was armed again is lost": [
        "verbs:check_no_completion_is_lost",
        "verbs:check_queues",
    ],
    "a completion that never comes is waited for": ["verbs:check_a_completion_that_never_comes"],
    "queue capacities at zero, or beyond what the device has": [
        "verbs:check_queues",
        "verbs:check_small_devices",
    ],
    "the producer dies: an end of file like any other": [
        "stream_faults:test_failed_producer_leaves_old_file",
        "stream_faults:test_killed_producer_publishes_no_file",
        "stream_faults:test_consumer_of_failed_producer_sees_no_end",
        "rdpipe:test_failed_producer_leaves_old_file",
        "rdpipe:test_consumer_of_cut_stream_sees_no_end",
        "vm:test_failed_producer_publishes_no_file",
    ],
    "non-blocking stdout, short writes": ["stream:test_non_blocking_stdin_and_stdout"],
    "a read error taken for the end": [
        "stream_faults:test_read_error_publishes_no_file",
        "stream_faults:test_read_error_on_stdin_publishes_no_file",
    ],
    "no disconnect event, no time-out, tries for ever": [
        "verbs:check_ends",
        "verbs:check_connect",
        "stream_faults:test_killed_end_is_noticed_by_the_other",
        "stream_faults:test_silence_of_the_other_end_is_noticed",
        "vm:test_killed_receiver_ends_sender",
        "vm:test_killed_sender_ends_receiver",
        "pair:test_transfer_survives_outage_and_cut_cable_ends_both_ends",
    ],
    "a wrong key, a stray connection or an empty message ends or enters": [
        "stream_hostile:test_receiver_survives_wrong_key",
        "stream_hostile:test_receiver_survives_bytes_of_strangers",
        "verbs:check_messages",
        "vm:test_receiver_survives_wrong_key",
        "vm:test_receiver_survives_foreign_program",
    ],
    "the key in argv and on the wire; a receiver that proves nothing": [
        "rdpipe:test_key_is_on_no_command_line",
        "stream_relays:test_key_is_not_visible_to_relay",
        "stream_relays:test_encrypted_data_is_not_visible_to_relay",
        "stream_hostile:test_reflecting_listener_gets_no_data",
    ],
    "a target cut before anyone came; an inherited stdout rewound": [
        "stream_ends:test_receiver_without_sender_leaves_target_unchanged",
        "stream:test_target_is_replaced_only_when_complete",
        "stream:test_inherited_stdout_is_not_rewound",
    ],
    "a full disk: a spin for ever": [
        "stream_faults:test_full_disk_is_reported_without_busy_loop",
        "stream_faults:test_filled_file_system_keeps_old_file",
    ],
    "a reader that leaves: the sender hangs": [
        "stream_faults:test_reader_that_leaves_ends_sender",
        "vm:test_consumer_that_leaves_early_ends_both_ends",
        "rdpipe:test_failed_segment_sets_status_and_is_named",
    ],
    "one message for each round trip": ["pair:test_long_round_trip_keeps_throughput"],
    "memory that a peer may write to": ["verbs:check_access"],
    "rdpipe and rdcp: status 0 always": [
        "rdpipe:test_failed_segment_sets_status_and_is_named",
        "rdcp:test_special_files_are_skipped_and_others_copied",
    ],
    "names that a remote shell reads; hosts that begin with a dash": [
        "rdpipe:test_file_names_reach_the_file_system_as_typed",
        "rdpipe:test_bad_arguments_are_refused",
        "rdcp:test_file_with_hostile_name_is_copied",
        "parts:test_shell_reads_quoted_word_unchanged",
    ],
    "one port: no host twice in a chain": ["rdpipe:test_pipe_passes_data_through_segments"],
    "processes left behind": [
        "rdpipe:test_ended_rdpipe_leaves_no_process",
        "rdpipe:test_killed_part_leaves_no_process",
        "rdpipe:test_ctrl_c_on_process_group_leaves_no_process",
        "rdpipe:test_silent_link_ends_both_sides",
    ],
    "an instruction set that not every processor has": [
        "install:test_default_build_has_no_processor_options"
    ],
    "IPv4 only": ["stream:test_transfer_over_ipv6", "vm:test_transfer_over_ipv6"],
    "no manual": [
        "install:test_options_are_in_manual_and_completion",
        "install:test_manual_has_no_groff_warning",
    ],
}
CASES = {
    "a producer killed with -9": ["stream_faults:test_killed_producer_publishes_no_file"],
    "a silent producer, a blocked writer": [
        "stream_faults:test_slow_ends_are_not_silent_ends",
        "rdpipe:test_silent_pipe_outlives_timeouts",
    ],
    "devices, FIFOs and symbolic links as targets": [
        "stream:test_dev_null_is_written_in_place",
        "stream_ends:test_target_that_is_no_regular_file_is_refused",
        "stream:test_target_file_keeps_mode_and_symlink",
        "stream:test_dangling_symlink_target_is_created",
        "rdpipe:test_last_example_of_the_article",
    ],
    "a rogue listener": [
        "stream_hostile:test_reflecting_listener_gets_no_data",
        "stream_hostile:test_reflected_proof_is_refused",
    ],
    "a man in the middle who mends the checksum": [
        "protection:test_forged_data_with_mended_checksum_passes_only_plain",
        "stream_relays:test_relay_cannot_change_sealed_record",
    ],
    "bytes that vanish while heartbeats go on": [
        "stream_lost:test_lost_bytes_within_record_end_both_ends",
        "stream_lost:test_lost_record_ends_both_ends",
        "stream_lost:test_lost_confirmation_leaves_outcome_unknown",
    ],
    "a relay that strips --encrypt": ["stream_relays:test_relay_cannot_strip_encryption"],
    "eight silent strangers": ["stream_hostile:test_silent_strangers_are_outlived"],
    "random kill points": ["stream_faults:test_random_kill_points"],
    "sizes": [
        "stream:test_transfer_of_boundary_sizes",
        "stream:test_sparse_file_arrives_unchanged",
        "vm:test_transfer_of_boundary_sizes",
    ],
    "rsync over --rsh: failure, Ctrl-C, a lost host": [
        "rsh:test_rsync_keeps_all_and_repeats_nothing",
        "rsh:test_rsync_reports_partial_copy",
        "rsh:test_interrupted_rsync_leaves_no_process",
        "rsh:test_rsync_ends_when_host_is_gone",
    ],
    "storms of signals": [
        "storm:test_interrupted_file_to_file",
        "storm:test_interrupted_fifo_to_pipe",
        "storm:test_interrupted_chain_keeps_data_and_status",
    ],
    "slow readers and writers": [
        "stream_faults:test_slow_ends_are_not_silent_ends",
        "stream:test_bytes_of_slow_producer_are_sent_before_chunk_is_full",
        "links:test_slow_record_on_narrow_link_does_not_time_out",
    ],
    "garbage, half a header, replays, cuts, too many credits": [
        "stream_hostile:test_random_bytes_after_proof_are_refused",
        "stream_hostile:test_sender_that_stops_mid_record_times_out",
        "stream_hostile:test_broken_rule_is_reported",
        "stream_hostile:test_sender_beyond_its_credits_is_refused",
        "stream_relays:test_relay_cannot_replay_transfer",
        "verbs:check_messages",
    ],
    "trees of hostile names": [
        "rdcp:test_tree_arrives_unchanged",
        "rdcp:test_planted_links_are_not_followed",
    ],
}
BAD_INPUT = {
    "unknown host": [
        "advice:test_unknown_host_is_reported",
        "advice:test_silent_name_server_is_reported_in_time",
        "rdpipe:test_host_unreachable_by_ssh_is_named",
    ],
    "no route": ["advice:test_missing_route_is_reported", "vm:test_rdma_alone_never_falls_back"],
    "no receiver": ["advice:test_missing_receiver_is_reported"],
    "no device": [
        "advice:test_missing_rdma_device_is_reported",
        "vm:test_receiver_refuses_missing_device",
    ],
    "port taken": ["advice:test_taken_port_is_reported"],
    "key missing, short, guessable, open to others or wrong": [
        "advice:test_missing_key_is_refused",
        "advice:test_short_key_is_refused",
        "advice:test_guessable_key_is_refused",
        "advice:test_key_file_open_to_others_is_refused",
        "advice:test_wrong_key_is_reported_at_both_ends",
    ],
    "version mismatch": [
        "advice:test_other_protocol_version_is_reported_at_both_ends",
        "stream_hostile:test_other_protocol_version_is_reported",
        "rdcp_stream:test_source_reports_sink_of_other_release",
        "units:check_handshakes",
    ],
    "a directory for rdsend": ["advice:test_directory_as_source_is_refused"],
    "the limit of pinned memory": [
        "vm:test_low_memlock_limit_shrinks_buffers",
        "vm:test_too_low_memlock_limit_falls_back_to_tcp",
        "units:check_pinned",
    ],
    "a file that shrinks or grows": [
        "advice:test_source_that_changes_size_is_reported",
        "rdcp:test_file_changed_while_read_fails_alone",
    ],
    "names that begin with a dash": [
        "advice:test_name_with_leading_dash_is_refused",
        "rdcp:test_file_with_hostile_name_is_copied",
    ],
    "spaces, newlines and quotes in names": [
        "stream:test_unusual_target_name_is_written",
        "advice:test_missing_source_file_is_reported",
        "stream_ends:test_name_with_newline_stays_in_one_line",
        "rdpipe:test_file_names_reach_the_file_system_as_typed",
        "rdcp:test_file_with_hostile_name_is_copied",
    ],
    "a retry that cannot help": ["rdcp_store:test_permanent_fault_is_not_retried"],
    "sources on two machines": ["rdcp_rules:test_sources_on_two_machines_are_refused"],
    "a disk that compresses": ["rdcp_store:test_file_larger_than_disk_fits_compressed"],
    "source and target are one": ["rdcp_same:test_file_onto_itself_is_refused"],
    "a tree: flips, drops, cuts, kills, a full disk, two copies at once": [
        "tree_faults:test_copy_survives_random_faults",
        "tree_faults:test_file_with_flipped_bit_is_sent_again",
        "tree_faults:test_file_damaged_in_each_try_stays_unchanged",
        "tree_faults:test_part_of_other_source_is_not_resumed",
        "tree_faults:test_file_that_does_not_fit_leaves_old_file",
    ],
}


def is_there(test: str) -> bool:
    place, _, name = test.partition(":")
    file = PLACES.get(place, f"test_{place}")
    if file.endswith(".c"):
        text = (SOURCE / "tests" / file).read_text()
        calls = re.findall(rf"^(?:static void |    +){name}\(", text, re.M)
        return len(calls) >= 2 and is_there(C_UNITS)
    return any(f"def {name}(" in path.read_text() for path in HERE.rglob(f"{file}.py"))


@pytest.mark.parametrize("row", [*FAULTS.items(), *CASES.items(), *BAD_INPUT.items()])
def test_table_rows_have_tests(row: tuple[str, list[str]]) -> None:
    what, tests = row
    assert tests and not [test for test in tests if not is_there(test)], what
