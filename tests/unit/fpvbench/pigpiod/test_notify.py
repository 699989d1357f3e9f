"""Reports: edges, handles, watchdogs, events, keep-alive, pipes."""

import os
from pathlib import Path

from testkit.pins.pigpiod import START_US, Core, make_core, words

from fpvbench.pigpiod.daemon import Client, Pipes
from fpvbench.pigpiod.edges.alerts import LOOK_US
from fpvbench.pigpiod.edges.pipes import FifoDirectory
from fpvbench.pigpiod.protocol import Cmd, Request

T0 = START_US


def test_change_is_reported_with_its_tick_and_all_levels(core: Core) -> None:
    core(Cmd.WRITE, 5, 1)
    reader = core.reader(1 << 17)
    core.run(10)
    core(Cmd.WRITE, 17, 1)
    core.run(1000)
    (report,) = reader.take()
    assert (report.sequence, report.flags, report.tick) == (0, 0, T0 + 10)
    assert report.levels >> 17 & 1 and report.levels >> 5 & 1


def test_unwatched_pins_are_not_reported(core: Core) -> None:
    reader, other = core.reader(1 << 17), core.reader(1 << 5)
    core(Cmd.WRITE, 17, 1)
    core.run(2000)
    assert (len(reader.take()), other.take()) == (1, [])


def test_played_edges_come_in_order_with_exact_ticks(core: Core) -> None:
    reader = core.reader(1 << 22)
    core.daemon.lines.play(22, [(T0 + 105, 1), (T0 + 345, 0), (T0 + 5000, 1)])
    core.run(10_000)
    wanted = [(T0 + 105, 1), (T0 + 345, 0), (T0 + 5000, 1)]
    assert reader.edges(22) == wanted
    assert core(Cmd.READ, 22) == 1


def test_pulse_between_two_samples_is_missed(core: Core) -> None:
    reader = core.reader(1 << 22)
    core.daemon.lines.play(22, [(T0 + 101, 1), (T0 + 104, 0)])
    core.run(5000)
    assert reader.edges(22) == []


def test_mode_changed_outside_the_daemon_is_seen(core: Core) -> None:
    core(Cmd.PWM, 17, 255)
    core.run(3000)
    reader = core.reader(1 << 17)
    core.soc.pin[17].mode = 0
    core.run(2000)
    assert [level for _, level in reader.edges(17)] == [0]


def test_sequence_wraps_and_counts_per_handle(core: Core) -> None:
    reader = core.reader(1 << 22)
    core.daemon.notifier.handles[reader.handle].sequence = 0xFFFF
    core.daemon.lines.play(22, [(T0 + 10, 1), (T0 + 20, 0)])
    core.run(2000)
    assert [report.sequence for report in reader.take()] == [0xFFFF, 0]


def test_tick_wraps(core: Core) -> None:
    core.now_us = 2**32 - 100
    reader = core.reader(1 << 22)
    core.daemon.lines.play(22, [(2**32 + 4, 1)])
    core.run(3000)
    assert [report.tick for report in reader.take()] == [9 - 5]


def test_trigger_on_an_input_is_not_seen(core: Core) -> None:
    reader = core.reader(1 << 17)
    assert core(Cmd.TRIG, 17, 10, words(1)) == 0
    core.run(2000)
    assert (reader.take(), core.soc.pin[17].mode) == ([], 0)


def test_pause_and_begin_again(core: Core) -> None:
    reader = core.reader(1 << 17)
    core(Cmd.NP, reader.handle)
    core(Cmd.WRITE, 17, 1)
    core.run(2000)
    assert reader.take() == []
    core(Cmd.NB, reader.handle, 1 << 17)
    core(Cmd.WRITE, 17, 0)
    core.run(2000)
    assert [level for _, level in reader.edges(17)] == [0]


def test_handles_run_out_and_come_back(core: Core) -> None:
    readers = [core.reader(1) for _ in range(32)]
    assert [reader.handle for reader in readers] == list(range(32))
    client = Client(lambda data: True)
    assert core.daemon.execute(client, Request(Cmd.NOIB), core.now_us) == -24
    assert core(Cmd.NC, 7) == 0
    assert core(Cmd.NC, 7) == -25
    assert core.daemon.execute(client, Request(Cmd.NOIB), core.now_us) == 7
    core.daemon.disconnect(client, core.now_us)
    assert core(Cmd.NB, 7, 1) == -25


def test_second_noib_replaces_the_first_of_its_connection(core: Core) -> None:
    client = Client(lambda data: True)
    handles = [core.daemon.execute(client, Request(Cmd.NOIB), core.now_us) for _ in range(3)]
    assert handles == [0, 1, 0]


def test_daemon_has_no_due_time_without_a_reader(core: Core) -> None:
    core(Cmd.PWM, 17, 128)
    assert core.daemon.due_us(core.now_us) is None
    reader = core.reader(1 << 17)
    assert core.daemon.due_us(core.now_us) == core.now_us + 1000
    core(Cmd.NC, reader.handle)
    assert core.daemon.due_us(core.now_us) is None


def test_batches_come_only_if_an_edge_is_awaited(core: Core) -> None:
    """Edges come within a millisecond, on the grid of batches; otherwise the daemon only polls."""
    reader = core.reader(1 << 22)
    assert core.daemon.due_us(core.now_us) == T0 + LOOK_US
    core.daemon.lines.play(22, [(T0 + 2300, 1)])
    assert core.daemon.due_us(core.now_us) == T0 + 3000
    core.run(3000)
    assert reader.edges(22) == [(T0 + 2300, 1)]
    assert core.daemon.due_us(core.now_us) == T0 + 3000 + LOOK_US
    core.run(1500)
    core(Cmd.WRITE, 22, 0)
    assert core.daemon.due_us(core.now_us) == T0 + 5000
    core.run(500)
    assert reader.edges(22) == [(T0 + 4500, 0)]
    core(Cmd.WDOG, 22, 2)
    assert core.daemon.due_us(core.now_us) == T0 + 7000
    core(Cmd.WDOG, 22, 0)
    core(Cmd.EVT, 5)
    assert core.daemon.due_us(core.now_us) == T0 + 6000


def test_filtered_edge_is_awaited(core: Core) -> None:
    reader = core.reader(1 << 22)
    core(Cmd.FG, 22, 2000)
    core.run(LOOK_US)
    assert core.daemon.due_us(core.now_us) == T0 + 1000 + LOOK_US
    core.daemon.lines.play(22, [(T0 + LOOK_US + 500, 1)])
    core.run(1000)
    assert core.daemon.due_us(core.now_us) == T0 + LOOK_US + 3000
    core.run(2000)
    assert reader.edges(22) == [(T0 + LOOK_US + 2500, 1)]


def test_keep_alive_after_a_minute(core: Core) -> None:
    quiet, busy = core.reader(0), core.reader(1 << 17)
    core.run(59_000_000)
    core(Cmd.WRITE, 17, 1)
    core.run(1_500_000)
    assert [report.flags for report in quiet.take()] == [0x40]
    assert [report.flags for report in busy.take()] == [0]
    core(Cmd.NP, quiet.handle)
    core.run(61_000_000)
    assert [report.flags for report in quiet.take()] == [0x40]


def test_gone_reader_is_freed(core: Core) -> None:
    client = Client(lambda data: False)
    handle = core.daemon.execute(client, Request(Cmd.NOIB), core.now_us)
    assert isinstance(handle, int)
    core(Cmd.NB, handle, 1 << 17)
    core(Cmd.WRITE, 17, 1)
    core.run(2000)
    assert core(Cmd.NB, handle, 1) == -25
    assert core.daemon.due_us(core.now_us) is None


def test_watchdog_fires_again_and_again(core: Core) -> None:
    reader, other = core.reader(1 << 22), core.reader(1 << 23)
    core(Cmd.WDOG, 22, 20)
    core.run(70_000)
    reports = reader.take()
    assert [report.flags for report in reports] == [0x20 | 22] * 3
    gaps = [b.tick - a.tick for a, b in zip(reports, reports[1:], strict=False)]
    assert all(20_000 <= gap <= 21_500 for gap in gaps)
    assert other.take() == []
    core(Cmd.WDOG, 22, 0)
    core.run(70_000)
    assert reader.take() == []


def test_edge_restarts_the_watchdog(core: Core) -> None:
    reader = core.reader(1 << 22)
    core(Cmd.WDOG, 22, 20)
    edges = [(T0 + 15_000 * n, n % 2) for n in range(1, 6)]
    core.daemon.lines.play(22, edges)
    core.run(85_000)
    assert [report.flags for report in reader.take()] == [0] * 5


def test_events(core: Core) -> None:
    reader, deaf = core.reader(0), core.reader(0)
    assert core(Cmd.EVM, reader.handle, 1 << 5 | 1 << 31) == 0
    for event in (5, 6, 31):
        assert core(Cmd.EVT, event) == 0
    core.run(3000)
    assert [report.flags for report in reader.take()] == [0x85, 0x9F]
    assert deaf.take() == []
    core(Cmd.NP, reader.handle)
    core(Cmd.EVT, 5)
    core.run(3000)
    assert [report.flags for report in reader.take()] == [0x85]


def test_pipes(tmp_path: Path) -> None:
    directory = FifoDirectory(tmp_path)
    core = make_core(tmp_path, pipes=Pipes(directory.open, directory.close))
    handle = core(Cmd.NO)
    assert handle == 0
    core(Cmd.NB, handle, 1 << 17)
    reader = os.open(tmp_path / "pigpio0", os.O_RDONLY | os.O_NONBLOCK)
    core(Cmd.WRITE, 17, 1)
    core.run(2000)
    assert len(os.read(reader, 4096)) == 12
    for number in range(12_000):  # unread reports are lost, and the daemon does not stall
        core(Cmd.WRITE, 17, number % 2)
        core.run(20)
    assert len(os.read(reader, 1 << 20)) % 12 == 0
    os.close(reader)
    assert core(Cmd.NC, handle) == 0
    assert not (tmp_path / "pigpio0").exists()
    core(Cmd.NO)
    core.daemon.close(core.now_us)
    assert not (tmp_path / "pigpio0").exists()


def test_absent_directory_gives_no_pipe(tmp_path: Path) -> None:
    directory = FifoDirectory(tmp_path / "absent")
    core = make_core(tmp_path, pipes=Pipes(directory.open, directory.close))
    assert core(Cmd.NO) == -23
    assert core.reader(1).handle == 0
