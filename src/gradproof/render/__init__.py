"""Results made readable. Renderers only read a `Result`; nothing here decides anything."""
