"""Reading topics: options, offsets, planning; what runs on the driver and what tasks do."""
