"""How a drill reaches a subject: the protocol (`base`), where it runs (`host`), and the bundled subjects."""
