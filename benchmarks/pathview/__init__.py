"""PathView-Bench: fourteen tasks on fields and macro views, scored by rules (protocol, section 5)."""
