"""Each file is one subject of the doctor: its rows, its facts, its look and its verdict."""
