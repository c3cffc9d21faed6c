"""Does a repro fail elsewhere too: with another backend, accelerator, options or torch?"""
