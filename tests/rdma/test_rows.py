"""Coverage table: the tests for each fault that similar tools were found to have, each case that
these tests must include, and each bad input. A row without a test fails."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "base-station" / "rdma"
PLACES = {"guest": "test_guest", "pair": "test_guest_pair", "units": "units.c"}
PLACES |= {"verbs": "units_verbs.c"}
C_UNITS = "c_units:test_c_units"
"""The test that runs the tests in C. Without it none of them run."""

# Each word is a test: of tests/rdma/test_WORD.py, or of base-station/rdma/tests.
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
        "stream_faults:test_one_that_fails_publishes_nothing",
        "stream_faults:test_one_that_is_killed_publishes_nothing",
        "stream_faults:test_the_command_at_the_other_end_sees_no_end",
        "rdpipe:test_a_producer_that_fails_publishes_nothing",
        "rdpipe:test_a_consumer_of_a_cut_stream_sees_no_end",
        "guest:test_a_producer_that_fails",
    ],
    "non-blocking stdout, short writes": ["stream:test_non_blocking_stdin_and_stdout"],
    "a read error taken for the end": ["stream_faults:test_a_read_error_is_no_end"],
    "no disconnect event, no time-out, tries for ever": [
        "verbs:check_ends",
        "verbs:check_dial",
        "stream_faults:test_either_end_killed",
        "stream_faults:test_silence_of_the_other_end_is_noticed",
        "guest:test_the_receiver_is_killed",
        "guest:test_the_sender_is_killed",
        "pair:test_an_outage_passes_and_a_cut_cable_ends_both_ends",
    ],
    "a wrong key, a stray connection or an empty message ends or enters": [
        "stream_hostile:test_a_wrong_key_ends_nothing",
        "stream_hostile:test_what_a_stranger_says_ends_nothing",
        "verbs:check_messages",
        "guest:test_a_wrong_key_ends_nothing",
        "guest:test_a_program_of_another_kind_ends_nothing",
    ],
    "the key in argv and on the wire; a receiver that proves nothing": [
        "rdpipe:test_the_key_is_on_no_command_line",
        "stream_relays:test_the_key_is_not_to_be_seen",
        "stream_relays:test_encrypted_data_is_not_to_be_seen",
        "stream_hostile:test_a_listener_that_reflects",
    ],
    "a target cut before anyone came; an inherited stdout rewound": [
        "stream_ends:test_nobody_came_and_it_is_as_it_was",
        "stream:test_a_target_is_not_there_before_it_is_whole",
        "stream:test_an_inherited_stdout_is_not_rewound",
    ],
    "a full disk: a spin for ever": [
        "stream_faults:test_a_full_disk_is_told_and_does_not_spin",
        "stream_faults:test_a_file_system_that_fills_keeps_the_old_file",
    ],
    "a reader that leaves: the sender hangs": [
        "stream_faults:test_a_reader_that_leaves_ends_the_sender",
        "guest:test_a_consumer_that_takes_little",
        "rdpipe:test_exit_status_and_who_it_was",
    ],
    "one message for each round trip": ["pair:test_a_long_way_slows_nothing_down"],
    "memory that a peer may write to": ["verbs:check_access"],
    "rdpipe and rdcp: status 0 always": [
        "rdpipe:test_exit_status_and_who_it_was",
        "rdcp:test_what_is_no_file_is_skipped_and_the_rest_goes_on",
    ],
    "names that a remote shell reads; hosts that begin with a dash": [
        "rdpipe:test_file_names_reach_the_file_system_as_typed",
        "rdpipe:test_refused_in_one_line_or_the_usage",
        "rdcp:test_a_file_of_a_hostile_name",
        "parts:test_a_shell_takes_a_quoted_word_for_what_it_was",
    ],
    "one port: no host twice in a chain": ["rdpipe:test_what_goes_in_comes_out"],
    "processes left behind": [
        "rdpipe:test_rdpipe_gone_leaves_no_process",
        "rdpipe:test_any_part_killed_leaves_no_process",
        "rdpipe:test_ctrl_c_on_the_whole_group",
        "rdpipe:test_a_link_that_falls_silent_ends_both_sides",
    ],
    "an instruction set that not every processor has": ["install:test_no_processor_is_asked_for"],
    "IPv4 only": ["stream:test_over_ipv6", "guest:test_over_ipv6"],
    "no manual": [
        "install:test_every_option_is_in_the_manual_and_the_completion",
        "install:test_the_manual_has_no_fault",
    ],
}
CASES = {
    "a producer killed with -9": ["stream_faults:test_one_that_is_killed_publishes_nothing"],
    "a silent producer, a blocked writer": [
        "stream_faults:test_slow_ends_are_not_silent_ends",
        "rdpipe:test_a_silent_pipe_stays_up_past_every_timeout",
    ],
    "devices, FIFOs and symbolic links as targets": [
        "stream:test_a_device_is_written_in_place",
        "stream:test_a_fifo_is_written_in_place",
        "stream:test_a_file_keeps_its_mode_and_its_symlink",
        "stream:test_a_symlink_to_nothing_yet",
        "rdpipe:test_the_articles_last_example",
    ],
    "a rogue listener": [
        "stream_hostile:test_a_listener_that_reflects",
        "stream_hostile:test_a_listener_that_reflects_the_proof",
    ],
    "a man in the middle who mends the checksum": [
        "protection:test_who_mends_the_checksum",
        "stream_relays:test_a_relay_cannot_change_what_is_sealed",
    ],
    "bytes that vanish while heartbeats go on": [
        "stream_lost:test_bytes_inside_a_record",
        "stream_lost:test_a_whole_record",
        "stream_lost:test_the_confirmation",
    ],
    "a relay that strips --encrypt": ["stream_relays:test_a_relay_cannot_strip_encryption"],
    "eight silent strangers": ["stream_hostile:test_silent_strangers_are_outlived"],
    "random kill points": ["stream_faults:test_random_kill_points"],
    "sizes": ["stream:test_every_size", "stream:test_a_sparse_file", "guest:test_every_size"],
    "storms of signals": [
        "storm:test_a_file_into_a_file",
        "storm:test_a_fifo_into_a_fifo",
        "storm:test_a_chain_and_its_failure",
    ],
    "slow readers and writers": [
        "stream_faults:test_slow_ends_are_not_silent_ends",
        "stream:test_a_slow_producers_bytes_do_not_wait_for_a_full_chunk",
        "links:test_slow_data_on_a_narrow_link",
    ],
    "garbage, half a header, replays, cuts, too many credits": [
        "stream_hostile:test_random_bytes_after_the_proof",
        "stream_hostile:test_one_that_stops_in_the_middle",
        "stream_hostile:test_each_rule",
        "stream_hostile:test_more_than_its_credits",
        "stream_relays:test_a_relay_cannot_play_a_transfer_again",
        "verbs:check_messages",
    ],
    "trees of hostile names": [
        "rdcp:test_a_tree_arrives_as_it_is",
        "rdcp:test_planted_links_are_not_followed",
    ],
}
BAD_INPUT = {
    "unknown host": [
        "advice:test_an_unknown_host",
        "advice:test_a_name_server_that_says_nothing",
        "rdpipe:test_a_host_that_ssh_cannot_reach_is_named",
    ],
    "no route": ["advice:test_no_route", "guest:test_rdma_alone_never_falls_back"],
    "no receiver": ["advice:test_no_receiver"],
    "no device": [
        "advice:test_no_device",
        "guest:test_a_receiver_waits_on_no_device_that_is_not_there",
    ],
    "port taken": ["advice:test_a_port_that_is_taken"],
    "key missing, short or wrong": [
        "advice:test_none",
        "advice:test_a_short_one",
        "advice:test_a_wrong_one",
    ],
    "version mismatch": [
        "advice:test_another_version",
        "stream_hostile:test_another_version",
        "rdcp_rules:test_a_source_says_that_the_sink_is_another_release",
        "units:check_meetings",
    ],
    "a directory for rdsend": ["advice:test_a_directory"],
    "the limit of pinned memory": [
        "guest:test_a_user_who_may_pin_little",
        "guest:test_a_user_who_may_pin_too_little",
        "units:check_pinned",
    ],
    "a file that shrinks or grows": [
        "advice:test_one_that_grows_or_shrinks",
        "rdcp:test_a_file_that_changes_while_read_fails_alone",
    ],
    "names that begin with a dash": [
        "advice:test_a_name_that_begins_with_a_dash",
        "rdcp:test_a_file_of_a_hostile_name",
    ],
    "spaces, newlines and quotes in names": [
        "stream:test_any_name",
        "advice:test_one_that_is_not_there",
        "stream_ends:test_a_name_stays_in_its_line",
        "rdpipe:test_file_names_reach_the_file_system_as_typed",
        "rdcp:test_a_file_of_a_hostile_name",
    ],
    "source and target are one": ["rdcp_same:test_a_file"],
    "a tree: flips, drops, cuts, kills, a full disk, two copies at once": [
        "tree_faults:test_random_faults",
        "tree_faults:test_a_flipped_bit_is_sent_again_and_the_others_go_on",
        "tree_faults:test_a_file_that_always_arrives_damaged_stays_as_it_was",
        "tree_faults:test_a_part_that_another_copy_made_meanwhile_is_not_believed",
        "tree_faults:test_a_file_that_does_not_fit_leaves_nothing",
    ],
}


def is_there(test: str) -> bool:
    place, _, name = test.partition(":")
    file = PLACES.get(place, f"test_{place}")
    if file.endswith(".c"):
        text = (SOURCE / "tests" / file).read_text()
        calls = re.findall(rf"^(?:static void |    +){name}\(", text, re.M)
        return len(calls) >= 2 and is_there(C_UNITS)
    path = HERE / f"{file}.py"
    return path.exists() and f"def {name}(" in path.read_text()


@pytest.mark.parametrize("row", [*FAULTS.items(), *CASES.items(), *BAD_INPUT.items()])
def test_each_row_has_its_tests(row: tuple[str, list[str]]) -> None:
    what, tests = row
    assert tests and not [test for test in tests if not is_there(test)], what
