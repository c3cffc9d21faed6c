"""Is the nearest known word suggested, and nothing where none is near?"""

from idbg.format.spelling import did_you_mean


def test_the_nearest_word_is_suggested_as_it_is_written() -> None:
    assert did_you_mean("inductr", ["eager", "inductor"], "there are two") == "did you mean inductor?"
    assert did_you_mean("flaot32", ["float32", "int8"], form='"{}"'.format) == 'did you mean "float32"?'
    assert did_you_mean("relu_3", ["relu_1", "relu_2", "relu_1"], most=3) == "did you mean relu_2 or relu_1?"


def test_where_no_word_is_near_something_else_is_said() -> None:
    assert did_you_mean("zzz", ["eager"], "there are: eager") == "there are: eager" and did_you_mean("a", []) == ""
