"""All private names of torch that idbg uses.

`names` looks each up where it is used. `hook_table` lists the functions of torch that are wrapped, `hooks` wraps them.
`tracing`, `fx`, `dynamo` and `lowering` are parts of torch; `comparing`, `exceptions`, `kernels` and `repros` serve one
room each. `builds` is imported before torch, so nothing is imported here. docs/versions.md has the versions of torch on
which the table was tested.
"""
