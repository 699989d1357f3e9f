// Command rival sends the pictures of a camera program to browsers by WebRTC, with the settings of
// browser teleoperation: the camera's own H.264, playout delay 0, answers to NACK and PLI, no
// pacing.
//
//	rival -listen localhost:8080 [-copies 2] -- PROGRAM ARGUMENT...
//	rival -watch http://localhost:8080/ -viewers 50
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"log"
	"net/http"

	"github.com/pion/webrtc/v4"
)

//go:embed page.html
var page []byte

// server answers the offers of its page with one track for all viewers.
type server struct {
	api    *webrtc.API
	camera *camera
	track  *webrtc.TrackLocalStaticRTP
}

func (s *server) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		response.Write(page)
		return
	}
	var offer webrtc.SessionDescription
	if err := json.NewDecoder(request.Body).Decode(&offer); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.answer(offer)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	json.NewEncoder(response).Encode(answer)
}

func main() {
	listen := flag.String("listen", "localhost:8080", "address and port of the page")
	copies := flag.Int("copies", 1, "number of times that each packet is sent")
	url := flag.String("watch", "", "open viewers of the rival with this page instead")
	viewers := flag.Int("viewers", 1, "number of these viewers")
	flag.Parse()
	if *url != "" {
		if err := watch(*url, *viewers); err != nil {
			log.Fatal(err)
		}
		return
	}
	api, err := newAPI(*copies)
	if err != nil {
		log.Fatal(err)
	}
	track, err := webrtc.NewTrackLocalStaticRTP(h264, "video", "camera")
	if err != nil {
		log.Fatal(err)
	}
	camera, err := startCamera(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(camera.send(track)) }()
	log.Fatal(http.ListenAndServe(*listen, &server{api, camera, track}))
}
