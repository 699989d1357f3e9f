"""Operations of the car's HTTP API; http_api.py writes them as OpenAPI."""

from typing import Any, NamedTuple

from fpvcar.library.api.export_jobs import Export, ExportRequest
from fpvcar.wire.network import NetworkState
from fpvcar.wire.station import Certificate, Listing, Pairing, Sums

ANYBODY, DRIVER, CHANGER, GROWN_UP, STATION = (
    "anybody",
    "driver",
    "driver's page",
    "grown-up",
    "station",
)
NUMBER, TEXT, WHOLE = {"type": "number"}, {"type": "string"}, {"type": "integer"}
OBJECT = {"type": "object"}


class Param(NamedTuple):
    """Parameter of a request: query, header or path."""

    name: str
    meaning: str
    schema: dict[str, Any] = TEXT
    place: str = "query"
    required: bool = False


class Call(NamedTuple):
    """Operation of the API. `answer`: a Struct, a JSON schema or a media type."""

    method: str
    path: str
    summary: str
    who: str
    answer: Any = OBJECT
    params: tuple[Param, ...] = ()
    refusals: tuple[int, ...] = ()
    status: int = 200
    body: Any = None


def bounded(low: float, high: float, usual: float | None = None) -> dict[str, Any]:
    """Return the schema of a number; `usual` is its default."""
    schema: dict[str, Any] = {**NUMBER, "minimum": low, "maximum": high}
    return schema if usual is None else {**schema, "default": usual}


BYTES, PLAIN_TEXT = "application/octet-stream", "text/plain"
FROM = Param("from", "Seconds from the start of the recording.", bounded(0, 1e9, 0))
R, C, S = "/api/recordings", "/api/calibration", "/api/station"
SIGNED = tuple(
    Param(name, meaning, TEXT, "header", True)
    for name, meaning in (
        ("X-Station", "Id of the station from its Pairing."),
        ("X-Nonce", "32 hexadecimal digits that grow with each request."),
        ("X-Mac", "HMAC-SHA256 by the pairing's key; pi/fpvcar/wire/station.py."),
    )
)
CALLS = (
    Call(
        "get",
        "/api/ping",
        "The car's clock, us of CLOCK_MONOTONIC.",
        ANYBODY,
        {**OBJECT, "properties": {"clock_us": WHOLE}, "required": ["clock_us"]},
    ),
    Call("get", "/api/status", "Parts, video and pages in figures.", ANYBODY),
    Call(
        "get",
        "/healthz",
        "`ok`; 503 and a line per fault if something is wrong.",
        ANYBODY,
        PLAIN_TEXT,
        refusals=(503,),
    ),
    Call("get", "/metrics", "Figures for Prometheus.", ANYBODY, PLAIN_TEXT),
    Call(
        "get",
        "/api/depth.png",
        "The depth camera's last small picture.",
        ANYBODY,
        "image/png",
        refusals=(404,),
    ),
    Call("get", "/api/motion", "Figures by which a page estimates the car's path.", ANYBODY),
    Call("get", "/api/picture", "Settings of the camera, and their choices.", ANYBODY),
    Call(
        "post",
        "/api/pass",
        "Turns the ticket of a `pass` message into a cookie for 30 days.",
        ANYBODY,
        None,
        (Param("X-Pass", "The ticket.", TEXT, "header", True),),
        (403,),
        204,
    ),
    Call(
        "post",
        R + "/unlock",
        "Takes a code, and gives a cookie for 30 days.",
        ANYBODY,
        None,
        (Param("X-Drive-Code", "Drive code or grown-up code.", TEXT, "header", True),),
        (401, 403, 429),
        204,
    ),
    Call(
        "get",
        R,
        "The recordings, oldest first.",
        DRIVER,
        OBJECT,
        (
            Param("most", "At most so many files.", WHOLE),
            Param("before", "Only files whose names are before this one."),
        ),
        (400,),
    ),
    Call(
        "get",
        R + "/{name}",
        "The MCAP file. Takes Range and If-Range.",
        DRIVER,
        BYTES,
        (),
        (404, 416),
    ),
    Call(
        "get",
        R + "/{name}/units",
        "Access units, framed as on /ws/video.",
        DRIVER,
        BYTES,
        (FROM, Param("seconds", "Length.", bounded(0, 30, 8))),
        (400, 404, 422),
    ),
    Call(
        "get",
        R + "/{name}/sheet",
        "A key frame of each second, framed likewise.",
        DRIVER,
        BYTES,
        (FROM, Param("seconds", "Length.", bounded(0, 60, 60))),
        (400, 404, 422),
    ),
    Call(
        "get",
        R + "/{name}/thumbnail",
        "The first key frame, framed likewise.",
        DRIVER,
        BYTES,
        (FROM,),
        (400, 404, 422),
    ),
    Call(
        "get",
        R + "/{name}/table",
        "Lines for plots.",
        DRIVER,
        OBJECT,
        (Param("points", "About so many points a line.", bounded(2, 10_000)),),
        (400, 404, 422),
    ),
    Call(
        "get",
        R + "/drives",
        "Drives that the recordings make up, newest first.",
        DRIVER,
        OBJECT,
        (
            Param("most", "Drives in the answer.", bounded(1, 1000, 50)),
            Param("before", "Began before, ms UTC.", NUMBER),
            Param("since", "Ended after, ms UTC.", NUMBER),
            Param("until", "Began before, ms UTC.", NUMBER),
            Param("driver", "Name of a driver."),
            Param("text", "Words in titles."),
            Param("wheel", "Driven or parked.", {**TEXT, "enum": ["driven", "parked"]}),
            Param("cause", "Causes of stops; repeat it for several."),
            Param("id", "The drive with this id."),
        ),
        (400,),
    ),
    Call(
        "post",
        R + "/drives/{id}/title",
        "Names a drive.",
        CHANGER,
        OBJECT,
        (Param("title", "The name; empty takes it back."),),
        (400, 404, 409),
    ),
    Call(
        "post",
        R + "/drives/{id}/delete",
        "Deletes the files of a drive.",
        GROWN_UP,
        OBJECT,
        (),
        (404, 409),
    ),
    Call(
        "post",
        R + "/exports",
        "Begins a film, zip, CSV or Parquet export.",
        DRIVER,
        Export,
        (),
        (400, 404, 429),
        body=ExportRequest,
    ),
    Call("get", R + "/exports/{id}", "Progress of an export.", DRIVER, Export, (), (404,)),
    Call("delete", R + "/exports/{id}", "Ends an export.", DRIVER, None, (), (404,), 204),
    Call(
        "get",
        R + "/exports/{id}/file",
        "The export, once it is ready.",
        DRIVER,
        BYTES,
        (),
        (404, 409),
    ),
    Call(
        "post",
        "/api/doctor",
        "Looks for faults; takes up to half a minute.",
        GROWN_UP,
        OBJECT,
        (),
        (409, 503),
    ),
    Call(
        "post",
        "/api/invitations",
        "Invites a guest to drive for a while.",
        GROWN_UP,
        {**OBJECT, "properties": {"link": TEXT, "qr": TEXT, "left_s": NUMBER}},
        (Param("minutes", "How long.", NUMBER),),
        (400, 409),
    ),
    Call(
        "get",
        "/api/network",
        "The car's Wi-Fi, and networks in range.",
        GROWN_UP,
        NetworkState,
        (),
        (503,),
    ),
    Call(
        "post",
        "/api/network/look",
        "Lists the networks anew.",
        GROWN_UP,
        OBJECT,
        (),
        (409, 503),
        202,
    ),
    Call(
        "post",
        "/api/network/join",
        "Leaves this network for that one.",
        GROWN_UP,
        OBJECT,
        (
            Param("ssid", "Name of the network.", TEXT, "query", True),
            Param("X-Wifi-Key", "Its key; empty for an open one.", TEXT, "header"),
        ),
        (400, 409, 503),
        202,
    ),
    Call("get", C, "Values, steps and changes of the calibration.", GROWN_UP),
    Call("get", C + "/step", "The step that goes on, or null.", GROWN_UP),
    Call(
        "get",
        C + "/profile",
        "The profile with what calibration found.",
        GROWN_UP,
        "application/toml",
    ),
    Call(
        "post",
        C + "/begin",
        "Begins a step.",
        GROWN_UP,
        OBJECT,
        (Param("step", "Its kind.", TEXT, "query", True), Param("of", "A motor or sensor.")),
        (400, 409),
    ),
    Call(
        "post",
        C + "/say",
        "A person's word for the step.",
        GROWN_UP,
        OBJECT,
        (
            Param("word", "The word.", TEXT, "query", True),
            Param("figure", "Figures with it, up to eight; repeat it.", NUMBER),
        ),
        (400, 409),
    ),
    Call("post", C + "/keep", "Keeps what the step found.", GROWN_UP, OBJECT, (), (400, 409)),
    Call("post", C + "/end", "Ends the step.", GROWN_UP, OBJECT, (), (409,)),
    Call("post", C + "/undo", "Goes back a change.", GROWN_UP, OBJECT, (), (400, 409)),
    Call(
        "post",
        C + "/set",
        "Keeps a value.",
        GROWN_UP,
        OBJECT,
        (
            Param("key", "Key of the profile.", TEXT, "query", True),
            Param(
                "value", "JSON: a number, true, false, or a list of numbers.", TEXT, "query", True
            ),
        ),
        (400, 409),
    ),
    Call("get", "/api/trust", "Fingerprint of the car's authority.", ANYBODY),
    Call(
        "get",
        "/api/trust/root.crt",
        "Certificate of the car's authority.",
        ANYBODY,
        "application/x-x509-ca-cert",
        (),
        (404,),
    ),
    Call(
        "post",
        S + "/pair",
        "Pairs a base station; https or loopback only.",
        ANYBODY,
        Pairing,
        (
            Param("X-Code", "The grown-up code.", TEXT, "header", True),
            Param("X-Station-Name", "Name of the station.", TEXT, "header", True),
        ),
        (400, 401, 403, 429),
    ),
    Call(
        "get",
        S + "/segments",
        "Sealed files; the answer has an X-Mac, too.",
        STATION,
        Listing,
        (
            Param("after", "Names after this one."),
            Param("most", "Files.", bounded(1, 500, 500)),
            Param("all", "Also those that a station has."),
        ),
        (400,),
    ),
    Call(
        "get",
        S + "/segments/{name}",
        "A file. Takes Range and If-Match, its SHA-256.",
        STATION,
        BYTES,
        (),
        (404, 412, 416),
    ),
    Call(
        "get", S + "/sums/{name}", "SHA-256 of a file and of each MiB.", STATION, Sums, (), (404,)
    ),
    Call("get", S + "/certificate", "Fingerprint of the car's certificate.", STATION, Certificate),
    Call(
        "post",
        S + "/receipts/{name}",
        "Says that the file is stored.",
        STATION,
        None,
        (Param("sha256", "Of the file, in hex.", TEXT, "query", True),),
        (400, 404, 409),
        204,
    ),
    Call("post", S + "/end", "Ends the pairing.", STATION, None, (), (), 204),
)
