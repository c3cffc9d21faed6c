"""Where are torch's private names that we stand on, and on which versions did they run?

Every one is in this room and nowhere else. Run on torch 2.11 (CPU; CUDA with triton 3.6) and 2.15 (CPU). All but the
symbols' ranges were there, under the same names, in both. `tracing`, `fx`, `dynamo`, `inductor` and `lowering` are
torch's own parts; `comparing`, `exceptions`, `kernels` and `repros` what one of our rooms asks; `builds` has to be
there before torch is imported, so nothing here imports it.
"""
