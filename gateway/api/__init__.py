"""The wire protocols: from a body to `GenerationRequest`s, and from the engine's events back to bytes.

    body -> wire -> constraints, intake -> run -> render, stream
"""
