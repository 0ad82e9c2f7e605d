"""Facts about the operating system; the only home of platform branches."""
