package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
)

const (
	recordHeaderBytes = 16 // pi/fpvcar/wire/camera.py
	payloadMost       = 1200
	bufferBytes       = 1 << 20
)

// camera is a running camera program of fpvcar.
type camera struct {
	requests io.Writer
	records  io.Reader
}

// startCamera starts a program. It ends with this process, as its stdin is closed then.
func startCamera(argv []string) (*camera, error) {
	if len(argv) == 0 {
		return nil, errors.New("no camera program")
	}
	program := exec.Command(argv[0], argv[1:]...)
	program.Stderr = os.Stderr
	requests, err := program.StdinPipe()
	if err != nil {
		return nil, err
	}
	records, err := program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &camera{requests, bufio.NewReaderSize(records, bufferBytes)}, program.Start()
}

// requestKey makes the next frame a key frame.
func (c *camera) requestKey() {
	io.WriteString(c.requests, "key\n")
}

// send writes the packets of each access unit to the track as soon as the unit is complete. It
// returns at the end of the camera program.
func (c *camera) send(track *webrtc.TrackLocalStaticRTP) error {
	payloader := &codecs.H264Payloader{}
	header := rtp.Header{Version: 2}
	for {
		unit, captureUs, err := c.read()
		if err != nil {
			return err
		}
		header.Timestamp = uint32(captureUs * clockHz / 1_000_000)
		payloads := payloader.Payload(payloadMost, unit)
		for index, payload := range payloads {
			header.SequenceNumber++
			header.Marker = index == len(payloads)-1
			// An error concerns a viewer that has gone; the others get the packet.
			_ = track.WriteRTP(&rtp.Packet{Header: header, Payload: payload})
		}
	}
}

// read returns the next access unit and its capture time.
func (c *camera) read() ([]byte, uint64, error) {
	var head [recordHeaderBytes]byte
	if _, err := io.ReadFull(c.records, head[:]); err != nil {
		return nil, 0, err
	}
	unit := make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.records, unit)
	return unit, binary.LittleEndian.Uint64(head[8:]), err
}
