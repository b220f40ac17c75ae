"""Where models are trained: in a pool of processes, on a graphics card, on several machines; one loop for all."""
