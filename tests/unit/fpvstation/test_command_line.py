"""Verbs of `fpvstation` without a car: messages and effects."""

import errno
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from testkit.base_station.stored import DATA, NAME, SESSION, put

from fpvcar.wire.station import Pairing
from fpvstation.__main__ import main
from fpvstation.fetch.cars import Cars
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    store = Store(Folder(made))
    store.open("")
    put(store)
    return made


def test_verify_counts_good_segments_and_exits_1_on_damage(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--store", str(root)]) == 0
    assert capsys.readouterr().out == "good: 1 segment (1 MB); bad: 0\n"
    (root / SESSION / NAME).write_bytes(bytes(len(DATA)))
    assert main(["verify", "--store", str(root)]) == 1
    said = capsys.readouterr()
    assert "good: 0 segments" in said.out and "set aside" in said.err


def test_verify_does_not_call_an_unreadable_file_bad(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object) -> str:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Store, "verify_segment", no)
    assert main(["verify", "--store", str(root)]) == 1
    said = capsys.readouterr().err
    assert "Permission denied; not moved" in said and "aside" not in said


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["verify", "--rate", "0"], "0 refused: expected 0.1 to 100000"),
        (["verify", "--rate", "nan"], "nan refused"),
        (["run", "--port", "99999"], "99999 refused: expected 1 to 65534"),
        (["run", "--most-gb", "-1"], "-1 refused: expected 0 to 100000"),
        (["cars", "--seconds", "inf"], "inf refused"),
    ],
)
def test_number_out_of_range_is_refused(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "variable"),
    [(["pair", "127.0.0.1:8080"], "FPVSTATION_CODE"), (["passwd"], "FPVSTATION_PASSWORD")],
)
def test_missing_terminal_names_the_environment_variable(
    argv: list[str],
    variable: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends(prompt: str) -> str:
        raise EOFError

    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("builtins.input", ends)
    monkeypatch.setattr("fpvstation.__main__.getpass", ends)
    assert main(argv) == 1
    assert f"set {variable}" in capsys.readouterr().err


def test_invalid_interface_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cars", "--interface", "300.1.1.1"]) == 0
    assert "'300.1.1.1' does not appear to be" in capsys.readouterr().err


def test_bad_settings_file_is_named_once(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "station.toml"
    for text, words in (
        (b"\xff", "not TOML"),
        (b"[replicas]\ntargt = 1", "replicas.targt"),
        (b'[replicas]\ntarget = "s3://"', "expected s3://BUCKET/PREFIX"),
        (b'[replicas]\ntarget = "s3://Drives"', "bucket of 3 to 63 of a-z"),
        (b'[replicas]\nsecond = "s3://drives/../other"', "folders of A-Z"),
    ):
        config.write_bytes(text)
        assert main(["restore", f"--store={root}", f"--config={config}", "x"]) == 1
        said = capsys.readouterr().err
        assert words in said and said.count(str(config)) == 1


@pytest.mark.parametrize("verb", ["run", "rebuild"])
def test_unwritable_store_names_the_next_step(
    verb: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".lock").mkdir()
    assert main([verb, f"--store={root}"]) == 1
    said = capsys.readouterr().err
    assert f"{root}: Is a directory: expected a folder" in said and "--store" in said


def test_verify_reads_one_session_or_all(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "Arrow-20261122T100000Z"
    store = Store(Folder(root))
    store.open("")
    put(store, f"{other}-0001.mcap", b"other", "Arrow")
    assert main(["verify", f"--store={root}", "--all"]) == 0
    assert "good: 2 segments" in capsys.readouterr().out
    (root / SESSION / NAME).write_bytes(b"bent")
    assert main(["verify", f"--store={root}", other]) == 0
    assert "good: 1 segment" in capsys.readouterr().out
    assert main(["verify", f"--store={root}", "Beagle"]) == 1
    assert '"Beagle" names 0 sessions' in capsys.readouterr().err
    assert main(["verify", f"--store={root}", SESSION]) == 1
    assert "good: 0 segments" in capsys.readouterr().out


def test_rm_takes_a_session_by_its_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = SESSION.rpartition("/")[2]
    assert main(["rm", "--store", str(root), "Arrow"]) == 1
    assert session in capsys.readouterr().err
    assert main(["rm", "--store", str(root), session]) == 0
    assert not list(Store(Folder(root)).segments())
    assert len(list(root.glob(f".trash/*/{SESSION}/{NAME}"))) == 1


def test_folder_that_is_no_store_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--store", str(tmp_path)]) == 1
    assert "is not a store: name one with --store" in capsys.readouterr().err


def test_absent_cars_are_listed_and_forgotten(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.mkdir()
    pairing = Pairing("Plague", "1" * 16, "2" * 32, "33" * 32)
    Cars(state).add(pairing, "http://127.0.0.1:1", "")
    assert main(["cars", "--seconds=0"]) == 0
    assert "Plague  http://127.0.0.1:1  this computer" in capsys.readouterr().out
    assert main(["forget", "Arrow"]) == 1
    assert "paired cars: Plague" in capsys.readouterr().err
    assert main(["forget", "Plague"]) == 0
    said = capsys.readouterr()
    assert "still lists this station" in said.err and "its recordings stay" in said.out
    assert Cars(state).all() == []


def test_page_for_other_machines_needs_a_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    store = tmp_path / "store"
    assert main(["run", "--host", "0.0.0.0", f"--store={store}"]) == 1
    assert "set a password first: fpvstation passwd" in capsys.readouterr().err
    assert not store.exists(), "it was refused before anything was opened"


def test_status_without_a_station_names_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--port", "1"]) == 1
    assert capsys.readouterr().err == (
        "fpvstation: no station answers at http://localhost:1/ (Connection refused): "
        "start one with `fpvstation run`, or name the port of a running one with "
        "--port\n"
    )


@pytest.mark.parametrize("answer", [b"{}", b"not JSON", None])
def test_status_of_another_program_names_the_address(
    capsys: pytest.CaptureFixture[str], answer: bytes | None
) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if answer else 404)
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        assert main(["status", "--port", str(port)]) == 1
        server.shutdown()
    said = capsys.readouterr().err
    assert f"http://localhost:{port}/" in said and "no station" in said
    assert "--port" in said and "Error" not in said


def test_status_of_a_port_that_never_answers_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fpvstation.web.status.ASK_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert main(["status", "--port", str(port)]) == 1
    assert "(no answer): start one" in capsys.readouterr().err


def test_plain_http_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pair", "http://192.168.1.5"]) == 1
    assert "over plain http" in capsys.readouterr().err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "fpvstation pair 192.168.1.5" in capsys.readouterr().out


def test_restore_brings_back_a_removed_session(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, none = SESSION.rpartition("/")[2], f"--config={tmp_path / 'none'}"
    argv = ["restore", f"--store={root}", none, session]
    assert main(argv) == 0
    assert f"{SESSION}: 1 segment already here and good" in capsys.readouterr().out
    assert main(["rm", f"--store={root}", session]) == 0
    assert main(argv) == 0
    assert "1 segment restored from the trash" in capsys.readouterr().out
    assert (root / SESSION / NAME).read_bytes() == DATA
    (root / SESSION / NAME).unlink()
    assert main(argv) == 1
    assert "no good copy in trash or remotes" in capsys.readouterr().err
    assert main([*argv[:-1], "Arrow-20261122T100000Z"]) == 1
    assert "Arrow/2026-11-22/Arrow-20261122T100000Z not found" in capsys.readouterr().err


def test_raw_refuses_a_terminal_and_an_absent_session(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["raw", f"--store={root}", "Arrow-20261122T100000Z"]
    assert main(argv) == 1
    assert "is not in the store: fpvstation restore Arrow/2026-11-22" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(argv) == 1
    assert "refused on a terminal: pipe it" in capsys.readouterr().err
