"""Every message on any wire of the car. Pure; pinned by the vectors in tests/vectors/.

    browser   -> run     /ws/drive   JSON text, one message a frame     up.py
    run       -> browser /ws/drive   the same                           down.py
    browser  <-> run     /ws/buttons the same                           buttons.py
    run       -> browser /ws/video   binary: header + one access unit   video.py
    browser  <-> run     /ws/copies  duplicate wishes and access units  up.py, video.py
    camera    -> run     stdout      binary: header + one access unit   camera.py
    run       -> camera  stdin       text lines: "key", "bitrate N"
    depth     -> run     stdout      binary: header + a small picture   camera.py
    run      <-> wheels  SEQPACKET   binary: setpoint / answer          wheels.py

All binary headers are little-endian. Times are CLOCK_MONOTONIC of the car. A rejected message
raises WireError (errors.py); json_text.py defines the types of text frames.
"""
