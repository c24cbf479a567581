"""The group of the bare consumer; apart from it, because importing `bare` configures Django."""

GROUP = "bench-fan-out"
