"""Command line of `fpvcar`: its parser and its verbs."""

ABOUT = """\
Drive a Raspberry Pi robot car, real or emulated, from a browser.

Drive:

  fpvcar bench                         start the emulated car on http://127.0.0.1:8080/
  fpvcar bench --host 0.0.0.0          the same for the whole LAN, with a QR code
  fpvcar run --profile my-car.toml     start the service of a real car
  fpvcar wheels --profile my-car.toml  start its motor process, beside run
  sudo fpvcar code                     print the drive code and a QR code

Set up and check:

  fpvcar profile list                  list profiles; also: show, check, propose, from-donkey
  sudo fpvcar setup                    set up this Raspberry Pi as a car
  fpvcar wiring my-car.toml            draw the wiring
  sudo fpvcar remote --endpoint HOST   reach the car from anywhere, by a WireGuard tunnel
  fpvcar mqtt                          publish a car without a base station by MQTT
  sudo fpvcar doctor                   find faults and their remedies
  fpvcar hil                           measure the emulated car or a real one

Recordings:

  fpvcar log list DIR                  list recordings; also: info, verify, recover, release
  fpvcar log export --lerobot OUT DIR  export a dataset for training; or --donkey
  fpvcar replay FILE...                rerun the recorded decisions and compare the results
  fpvcar replay --page FILE...         play recordings in a browser
  fpvcar export --mp4 OUT.mp4 FILE...  export a video; --csv, --parquet: tables
"""
