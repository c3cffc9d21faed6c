"""How is a script run many times in processes of its own, each begun from one that has torch imported?

`client`: what a search asks (`Forks.run`); `tried`: what a try came to; `fresh`: run once as a stranger would; `rate`:
of what does not always fail. `handle`, `attempt`: the server's and a try's, on our side; `processes`: who started whom,
from /proc. `server`: forks; `become`, `alone`: what a process does then to be `python FILE`.
"""
