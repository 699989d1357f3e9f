"""Effect of distance on Wi-Fi, by published models: a rate, and a loss. Pure.

    distance -> path loss -> power received -> the fastest rate that it carries
                                            -> packets lost despite retransmission

Indoors, 2.4 GHz, one antenna at either end, a channel of 20 MHz. Without fading and without
neighbours: real air is worse, and differs from minute to minute.
"""

import math

CHANNEL_MHZ = 2437.0
DECADE_DB = 28.0
"""Loss for ten times the distance: ITU-R P.1238, table 2, residential, 2.4 GHz."""
SENT_DBM = 15.0
"""Power sent by a Raspberry Pi, about."""
RATES = (
    (-64.0, 65.0),
    (-65.0, 58.5),
    (-66.0, 52.0),
    (-70.0, 39.0),
    (-74.0, 26.0),
    (-77.0, 19.5),
    (-79.0, 13.0),
    (-82.0, 6.5),
)
"""Pairs (dBm at which one of ten frames is lost, Mbit/s): IEEE 802.11-2020, table 19-18, MCS 7
to 0 with one stream; rates with the long guard interval, table 19-27."""
MARGIN_DB = 3.0
"""Surplus of received power at which a rate is chosen."""
LOST_AT_LIMIT = 0.1
DB_A_DECADE = 2.0
"""Decrease of power for ten times as many lost frames: 2 dB, about that of a convolutional code;
the standard names one point of the curve."""
TRIES = 7
"""Number of tries of a frame before it is given up: dot11ShortRetryLimit."""
USED = 0.6
"""Share of the rate left beside preambles, gaps and acknowledgements."""


def received_dbm(distance_m: float) -> float:
    """Return the power that arrives: ITU-R P.1238, equation 1, on one floor."""
    loss_db = 20 * math.log10(CHANNEL_MHZ) + DECADE_DB * math.log10(distance_m) - 28
    return SENT_DBM - loss_db


def frames_lost(margin_db: float) -> float:
    """Return the share of frames lost with so much more power than a rate needs."""
    return min(1.0, LOST_AT_LIMIT * math.pow(10.0, -margin_db / DB_A_DECADE))


def link(distance_m: float) -> tuple[float, float]:
    """Return (bit/s that pass, share of packets lost each way) at this distance."""
    dbm = received_dbm(distance_m)
    needs_dbm, mbps = next((one for one in RATES if dbm >= one[0] + MARGIN_DB), RATES[-1])
    lost = frames_lost(dbm - needs_dbm)
    tries = sum(lost**number for number in range(TRIES))
    return USED * mbps * 1e6 / tries, lost**TRIES
