"""MCAP and Protobuf by hand; imports the standard library only."""
