"""Memory: liveness to intervals, intervals to offsets, and judging the result."""
