"""Every message on any wire of the car. Pure; fixed by tests/vectors/.

    browser   -> run     /ws/drive   JSON text, one message a frame     up.py
    run       -> browser /ws/drive   the same                           down.py
    browser  <-> run     /ws/buttons the same                           buttons.py
    run       -> browser /ws/video   binary: header + one access unit   video.py
    browser  <-> run     /ws/copies  wishes and units, once more        up.py, video.py
    camera    -> run     stdout      binary: header + one access unit   camera.py
    run       -> camera  stdin       text lines: "key", "bitrate N"
    depth     -> run     stdout      binary: header + a small picture   camera.py
    run      <-> wheels  SEQPACKET   binary: setpoint / answer          wheels.py

All binary headers are little-endian. Times are CLOCK_MONOTONIC of the car. What is
refused is a WireError (errors.py); how a text frame is typed is in json_text.py.
"""
