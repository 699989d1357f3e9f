"""What a car's profile cannot know: measured on the car, kept beside it. Pure."""
