"""Programs of `fpvcar camera ...`: each writes the access units of one kind of camera."""
