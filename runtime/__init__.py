"""The runtime: model weights and forward pass, scheduler, step loop, sampler, the engine process and its client.

The gateway uses `runtime.client`, `runtime.protocol`, `runtime.config` and `runtime.errors`; none of them
imports torch, which lives in the engine's process alone.
"""
