"""Real clients that delegate real work: their models are scripted, and so is Pi's; everything between them is real."""
