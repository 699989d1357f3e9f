"""README and docs/ as a program can check them: commands, links, the profile's keys."""

from tools import profile_docs


def test_the_page_of_profile_keys_is_up_to_date() -> None:
    written = profile_docs.PAGE.read_text(encoding="utf-8")
    assert written == profile_docs.page(), "stale: make docs"
