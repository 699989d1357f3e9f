"""Learning from a camera's units whether it answers requests for key frames."""

from fpvcar.video.keys import ANSWER_UNITS, ANSWERS, KeyRequests


def film(keys: KeyRequests, kinds: str) -> None:
    """Feed units of a camera: K or P; "?" is a request, "!" one that cannot be made."""
    for kind in kinds:
        if kind in "?!":
            keys.requested(kind == "?")
        else:
            keys.received(kind == "K")


def test_key_requests_without_a_request_count_as_answered() -> None:
    keys = KeyRequests()
    film(keys, "K" + 300 * "P")
    assert keys.answered


def test_key_requests_answered_late_but_in_time_count_as_answered() -> None:
    keys = KeyRequests()
    film(keys, 20 * ("?" + (ANSWER_UNITS - 1) * "P" + "KPP"))
    assert keys.answered


def test_key_requests_ignored_stay_unanswered_until_a_streak() -> None:
    keys = KeyRequests()
    film(keys, "?" + ANSWER_UNITS * "P")
    assert not keys.answered
    film(keys, (ANSWERS - 1) * "?KPP" + "PP?" + ANSWER_UNITS * "P")
    film(keys, (ANSWERS - 1) * "?KPP")
    assert not keys.answered, "a key frame of the GOP may come just then"
    film(keys, "?K")
    assert keys.answered


def test_key_requests_repeated_get_no_more_time() -> None:
    keys = KeyRequests()
    film(keys, ANSWER_UNITS * "?P")
    assert not keys.answered


def test_key_requests_that_cannot_be_made_count_as_unanswered_at_once() -> None:
    keys = KeyRequests()
    film(keys, "!")
    assert not keys.answered
