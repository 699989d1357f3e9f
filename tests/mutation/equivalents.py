"""Mutants that no test can tell from the original, each with the reason.

The run over all mutants fails if one of these is killed or is no longer a mutant.
"""

MAXLEN = ("wrong.maxlen or 0: without 0", "constant 0 -> 1", "constant 0 -> -1")
NO_WAIT = [(where, at) for where in ("_crowd_s", "_own_s") for at in ("", " #2")]
REMOTES = ("RecordingRights.let_in", "DeviceRights._unlock")
EQUIVALENTS: dict[str, str] = {
    "gate: constant 2 -> 3": "of ranks only the order counts",
    "gate.decide: wish.throttle > 0.0: > -> >=": "of nothing no part is taken",
    **dict.fromkeys(
        (f"fast_path.head: constant 0 -> {n} #{m}" for n in (1, -1) for m in (3, 4)),
        "of a refused frame the end is not read",
    ),
    "fast_path.unmasked: removed: return None": "the function then ends, and returns None",
    **dict.fromkeys(
        (f"codes.CodeCheck._crowd_s: {change}" for change in MAXLEN),
        "a limit for all networks always has its length",
    ),
    **dict.fromkeys(
        (f"codes.CodeCheck.{where}: constant 0.0 -> -0.1{at}" for where, at in NO_WAIT),
        "the other limit's 0.0 is larger",
    ),
    "codes.load_codes: removed: return saved": "the write then fails, and returns the same",
    "codes.load_key: removed: return key": "the file is then read, and has the same",
    "guard.share: way_m < room_m: < -> <=": "what just fits leaves no share",
    "guard.share: most < LEAST_SHARE: < -> <=": "at the least share either will do",
    "guard.covers: sensor.bearing_deg - bearing_deg + 180.0: + -> -": "mod 360",
    "guard.covers: sensor.bearing_deg - bearing_deg: - -> +": "of 0 and 180, mod 360",
    "guard.ObstacleTrack.__init__: constant 0 -> -1": "what is seen first makes it 0",
    "gate.hold: constant 0 -> -1 #2": "no cause ranks below those without a rank",
    "gate.Freshness.__init__: constant 1 -> 2": "the wire refuses numbers below 0",
    "gate.Freshness._age_s: self._fastest[-1][1] >= transit_s: >= -> >": "of two that "
    "are equally fast the older may stay: the newer follows it",
    "gate.Freshness._age_s: age_s <= most_s: <= -> <": "of equal ages either counts",
    "controller.Wheels.__init__: removed: self._fed_ns = -FED_NS": "declared here, and set "
    "again when the pins come",
    "controller.Wheels.__init__: constant 0 -> -1": "no clock is below 0",
    "controller.Wheels._apply: constant True -> False": "the lease compared their number",
    "controller.Wheels._dead_man_awake: removed: return False": "it then asks the dead man",
    "controller.Wheels._dead_man_awake: constant False -> True": "second line: the lease "
    "has run out by then and takes but zero",
    "controller.Wheels._try: removed: self._fed_ns = now_ns - FED_NS": "RETRY_NS is longer "
    "than FED_NS: the last feeding was before",
    "controller.Lease._parse: constant True -> False": "their number was compared before",
    "esc.pulse_of: share > 0.0: > -> >=": "a share of zero has its pulse before",
    "esc.PulseLaw._next: self._wish > 0.0: > -> >=": "a wish of zero is neutral before",
    "invitations_api.InvitationsApi._page: request.url.host or '': without ''": "for mypy: the "
    "address of a request has a host",
    "limits.RateLimit.__init__: constant 0.0 -> -0.1": "a debt below 0 counts as 0",
    "limits.Rank: constant 2 -> 3": "of ranks only the order counts, and the fair share "
    "of a driver's place is never computed",
    "limits.connection_places: soft < needed: < -> <=": "a limit that is as wanted is set "
    "again to the same",
    "mixing.corrected: deg > 0.0: > -> >=": "the centre is a share of zero of either end",
    "mixing.trimmed: value > 0.0: > -> >=": "zero is zero with either gain",
    "mixing.slewed: start_share * goal > 0.0: > -> >=": "with either one zero the start "
    "or the end is zero, so is the result's growth",
    **dict.fromkeys(
        (f"recover._chunk: constant 0 -> {n} #{m}" for n in (1, -1) for m in (2, 3)),
        "a chunk without messages is not listed",
    ),
    **dict.fromkeys(
        (
            f"recover.Ending.{change}"
            for change in (
                "__init__: removed: self.cut = 0",
                "__init__: constant 0 -> 1",
                "__init__: constant 0 -> -1",
                "note: removed: self.cut = step.at",
            )
        ),
        "the end of the step before; a file without one is deleted",
    ),
    "remembered_browsers.Device.rights: constant 0.0 -> 0.1": "no clock shows the first tenth of "
    "a second of 1970",
    **dict.fromkeys(
        (f"remembered_browsers.Devices.__init__: constant 0.0 -> {n}" for n in (0.1, -0.1)),
        "only a clock of 1970 is that near to it",
    ),
    "remembered_browsers.Devices.find_invitation: constant 0 -> -1": "each token is random: "
    "one fits at most",
    **dict.fromkeys(
        (f"rights.{where}: request.remote or '': without ''" for where in REMOTES),
        "for mypy: a request over TCP has an address",
    ),
    "rights.DeviceRights.let_change: device is not None and self.grown_up(request): without "
    "device is not None": "for mypy: no device is no grown-up",
    "salvage.Salvager.__init__: removed: self._name = ''": "set with the steps; declared here",
    "salvage.Salvager.advance: removed: self._steps = None #2": "a generator that raised has "
    "ended: the next step tells",
}
