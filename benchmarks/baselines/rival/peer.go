package main

import (
	"log"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

const (
	clockHz         = 90_000
	playoutDelayURI = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
)

// h264 is constrained baseline; a viewer accepts any level.
var h264 = webrtc.RTPCodecCapability{
	MimeType:    webrtc.MimeTypeH264,
	ClockRate:   clockHz,
	SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
}

// stamp adds a playout delay of 0 to every packet, and sends it `copies` times.
type stamp struct {
	interceptor.NoOp
	copies int
}

func (s *stamp) NewInterceptor(string) (interceptor.Interceptor, error) {
	return s, nil
}

func (s *stamp) BindLocalStream(
	stream *interceptor.StreamInfo, next interceptor.RTPWriter,
) interceptor.RTPWriter {
	var id uint8
	for _, extension := range stream.RTPHeaderExtensions {
		if extension.URI == playoutDelayURI {
			id = uint8(extension.ID)
		}
	}
	if id == 0 {
		log.Fatal("the browser offers no playout delay")
	}
	write := func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		// The least and the most delay, 12 bits each.
		if err := header.SetExtension(id, []byte{0, 0, 0}); err != nil {
			return 0, err
		}
		for range s.copies - 1 {
			if _, err := next.Write(header, payload, attributes); err != nil {
				return 0, err
			}
		}
		return next.Write(header, payload, attributes)
	}
	return interceptor.RTPWriterFunc(write)
}

// newAPI returns Pion with the playout delay and retransmissions, without congestion control.
func newAPI(copies int) (*webrtc.API, error) {
	media := &webrtc.MediaEngine{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	delay := webrtc.RTPHeaderExtensionCapability{URI: playoutDelayURI}
	if err := media.RegisterHeaderExtension(delay, webrtc.RTPCodecTypeVideo); err != nil {
		return nil, err
	}
	interceptors := &interceptor.Registry{}
	interceptors.Add(&stamp{copies: copies}) // first: closest to the network
	if err := webrtc.ConfigureNack(media, interceptors); err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	return webrtc.NewAPI(
		webrtc.WithMediaEngine(media),
		webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings),
	), nil
}

// answer opens a connection for an offer, and returns the answer with all candidates.
func (s *server) answer(offer webrtc.SessionDescription) (*webrtc.SessionDescription, error) {
	peer, err := s.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateFailed {
			peer.Close()
		}
	})
	sender, err := peer.AddTrack(s.track)
	if err != nil {
		return nil, err
	}
	go s.serveRequests(sender)
	if err := peer.SetRemoteDescription(offer); err != nil {
		return nil, err
	}
	answer, err := peer.CreateAnswer(nil)
	if err != nil {
		return nil, err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(answer); err != nil {
		return nil, err
	}
	<-gathered
	return peer.LocalDescription(), nil
}

// serveRequests passes a viewer's requests for a key frame to the camera. The interceptors read
// its NACKs from the same packets.
func (s *server) serveRequests(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				s.camera.requestKey()
			}
		}
	}
}
