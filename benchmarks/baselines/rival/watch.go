package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
	"golang.org/x/sys/unix"
)

// connectTimeout limits the time until a viewer has its first access unit.
const connectTimeout = 20 * time.Second

// crowd counts the access units of all viewers since the last "go".
type crowd struct {
	mutex  sync.Mutex
	report report
}

// report is that of benchmarks/load_viewers.py.
type report struct {
	AgesMs []float64 `json:"ages_ms"`
	Bytes  int       `json:"bytes"`
	CPUs   float64   `json:"cpu_s"`
}

// watch opens viewers of a rival without decoders, with the commands on stdin and the report of
// benchmarks/load_viewers.py.
func watch(url string, viewers int) error {
	api, err := newAPI(1)
	if err != nil {
		return err
	}
	all := &crowd{}
	for number := range viewers {
		if err := all.view(api, url); err != nil {
			return fmt.Errorf("viewer %d of %d: %w", number+1, viewers, err)
		}
	}
	fmt.Println("ready")
	commands, beganS := bufio.NewScanner(os.Stdin), 0.0
	for commands.Scan() {
		all.mutex.Lock()
		if commands.Text() == "go" {
			all.report, beganS = report{}, clock(unix.CLOCK_PROCESS_CPUTIME_ID)
			all.mutex.Unlock()
			continue
		}
		all.report.CPUs = clock(unix.CLOCK_PROCESS_CPUTIME_ID) - beganS
		return json.NewEncoder(os.Stdout).Encode(all.report)
	}
	return errors.New("stdin was closed before \"end\"")
}

// view connects one viewer, and returns when it has its first access unit.
func (c *crowd) view(api *webrtc.API, url string) error {
	peer, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	begun := make(chan struct{})
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { c.receive(track, begun) })
	direction := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	if _, err := peer.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, direction); err != nil {
		return err
	}
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(offer); err != nil {
		return err
	}
	<-gathered
	body, err := json.Marshal(peer.LocalDescription())
	if err != nil {
		return err
	}
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer webrtc.SessionDescription
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if err := peer.SetRemoteDescription(answer); err != nil {
		return err
	}
	select {
	case <-begun:
		return nil
	case <-time.After(connectTimeout):
		return fmt.Errorf("no picture within %v: %v", connectTimeout, peer.ConnectionState())
	}
}

// receive reads a track until its end; it closes `begun` after the first access unit.
func (c *crowd) receive(track *webrtc.TrackRemote, begun chan<- struct{}) {
	first := true
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		nowTicks := uint32(uint64(clock(unix.CLOCK_MONOTONIC) * clockHz))
		c.mutex.Lock()
		c.report.Bytes += len(packet.Payload)
		if packet.Marker {
			// The camera's capture time, which counts modulo 2^32.
			ageMs := float64(int32(nowTicks-packet.Timestamp)) * 1000 / clockHz
			c.report.AgesMs = append(c.report.AgesMs, ageMs)
			if first {
				close(begun)
				first = false
			}
		}
		c.mutex.Unlock()
	}
}

// clock returns the seconds of a clock of clock_gettime(2).
func clock(id int32) float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(err)
	}
	return float64(now.Sec) + float64(now.Nsec)/1e9
}
