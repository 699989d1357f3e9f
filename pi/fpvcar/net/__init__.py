"""The Wi-Fi of the car: the network it is in, or one of its own."""
