"""Wi-Fi of the car: joins a known network, or opens an access point of its own."""
