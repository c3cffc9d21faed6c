"""Which is the first of many in a row with which it fails, where some cannot tell?"""

from collections.abc import Callable


def first_failing(high: int, fails: Callable[[int], bool | None]) -> tuple[int, int]:
    """How many it takes: with the second number of them it fails, and with the first it does not.

    `high` of them fail, and none of them do not: neither is asked. They are neighbours, unless all between could not
    tell (`fails` gave None).
    """
    low = 0
    silent: set[int] = set()
    while between := [number for number in range(low + 1, high) if number not in silent]:
        middle = (low + high) // 2
        number = min(between, key=lambda at: (abs(at - middle), at))
        answer = fails(number)
        if answer is None:
            silent.add(number)
        elif answer:
            high = number
        else:
            low = number
    return low, high
